// The table of pre-tokenizers: expressions as the models' authors wrote them, and which name means which list.
//
// Layer: tokenizer; data, plus the look-ups. Expressions are in PCRE2 spelling; splitter.cpp compiles them.
#include "tokenizer/pretokenizers.h"

#include <algorithm>
#include <iterator>

namespace hk::tokenizer {
namespace {

// Parts that many expressions share.
#define HK_CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define HK_LEAD R"re([^\r\n\p{L}\p{N}]?)re"
#define HK_UPPER R"re([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])re"
#define HK_LOWER R"re([\p{Ll}\p{Lm}\p{Lo}\p{M}])re"
#define HK_BLANKS R"re(|\s+(?!\S)|\s+)re"
#define HK_SYMBOLS_LINES_BLANKS R"re(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+)re" HK_BLANKS
#define HK_SYMBOLS_SLASH_LINES_BLANKS R"re(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+)re" HK_BLANKS
// Words cut before a capital, with their contraction.
#define HK_CASED_WORDS                                       \
  HK_LEAD HK_UPPER "*" HK_LOWER "+" HK_CONTRACTION "?|" /**/ \
      HK_LEAD HK_UPPER "+" HK_LOWER "*" HK_CONTRACTION "?"

constexpr char kGpt2[] = R"re('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+)re" HK_BLANKS;
constexpr char kLlama3[] = HK_CONTRACTION "|" HK_LEAD R"re(\p{L}+|\p{N}{1,3})re" HK_SYMBOLS_LINES_BLANKS;
constexpr char kQwen2NoContraction[] = HK_LEAD R"re(\p{L}+|\p{N})re" HK_SYMBOLS_LINES_BLANKS;
constexpr char kQwen2[] = HK_CONTRACTION "|" HK_LEAD R"re(\p{L}+|\p{N})re" HK_SYMBOLS_LINES_BLANKS;
constexpr char kQwen35[] =
    HK_CONTRACTION "|" HK_LEAD R"re([\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+)re" HK_BLANKS;
constexpr char kMiniCpm5[] = HK_CONTRACTION "|" HK_LEAD R"re(\p{L}+|\p{N}+)re" HK_SYMBOLS_LINES_BLANKS;
constexpr char kSeedCoder[] =
    HK_CONTRACTION "|" HK_LEAD R"re(\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+)re" HK_BLANKS;
constexpr char kBailing[] =
    R"re('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n])re" HK_BLANKS;
constexpr char kO200k[] = HK_CASED_WORDS R"re(|\p{N}{1,3})re" HK_SYMBOLS_SLASH_LINES_BLANKS;
constexpr char kYoutuWords[] = HK_CASED_WORDS R"re(|\p{N})re" HK_SYMBOLS_SLASH_LINES_BLANKS;
constexpr char kTekken[] =
    HK_LEAD HK_UPPER "*" HK_LOWER "+|" HK_LEAD HK_UPPER "+" HK_LOWER R"re(*|\p{N})re" HK_SYMBOLS_SLASH_LINES_BLANKS;
constexpr char kDeepseekV3Words[] =
    R"re([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)re"
    R"re(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+)re" HK_BLANKS;
constexpr char kBloom[] = R"re( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C})]+)re";
constexpr char kFalconSymbols[] = R"re([\p{P}\$\+<=>\^~\|`]+)re";
constexpr char kDefaultSymbols[] = R"re([\p{P}\$\+<=>\^~\|]+)re";
constexpr char kThreeDigits[] = "[0-9][0-9][0-9]";
constexpr char kLineEnd[] = R"re([\r\n])re";
constexpr char kNumber[] = R"re(\p{N})re";
constexpr char kNumbers[] = R"re(\p{N}+)re";
constexpr char kNumbersByThree[] = R"re(\p{N}{1,3})re";

// Expressions that take quadratic time or deep stacks as written, each with an equivalent that does not.
constexpr char kBlanksAtEndOriginal[] = R"re(\s+$)re";
constexpr char kBlanksAtEnd[] = R"re((?<!\s)\s++$)re";  // only a run's start is worth trying
constexpr char kDigitCutsOriginal[] = R"re((?=(\d{3})+(?!\d)))re";
constexpr char kBoundaryDigitsOriginal[] = R"re(\d{1,3}(?=(?:\d{3})*\b))re";
constexpr char kExaoneMoeOriginal[] = HK_CONTRACTION
    "|" HK_LEAD R"re((?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n])re" HK_BLANKS;
constexpr char kExaoneMoe[] = HK_CONTRACTION  // nothing after a word can fail, so its groups need no way back
    "|" HK_LEAD R"re((?:\p{L}\p{M}*+(?: \p{L}\p{M}*+)*+)++|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n])re" HK_BLANKS;
#define HK_NOT_HAN R"re((?:(?!\p{sc:Han}))re"
constexpr char kKimiOriginal[] = R"re(\p{sc:Han}+|)re" HK_LEAD HK_NOT_HAN HK_UPPER ")*" HK_NOT_HAN HK_LOWER
                                 ")+" HK_CONTRACTION "?|" HK_LEAD HK_NOT_HAN HK_UPPER ")+" HK_NOT_HAN HK_LOWER
                                 ")*" HK_CONTRACTION R"re(?|\p{N}{1,3})re" HK_SYMBOLS_LINES_BLANKS;
#define HK_UPPER_NOT_HAN R"re([^\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{sc:Han}])re"  // complement of the other categories
#define HK_LOWER_NOT_HAN R"re([^\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{C}\p{sc:Han}])re"
constexpr char kKimi[] =
    R"re(\p{sc:Han}+|)re" HK_LEAD HK_UPPER_NOT_HAN "*" HK_LOWER_NOT_HAN "+" HK_CONTRACTION "?|" HK_LEAD HK_UPPER_NOT_HAN
    "+" HK_LOWER_NOT_HAN "*" HK_CONTRACTION R"re(?|\p{N}{1,3})re" HK_SYMBOLS_LINES_BLANKS;
constexpr char kJais2Original[] = HK_CONTRACTION
    "|" HK_LEAD R"re(\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+)re"
    R"re(|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S))re"
    R"re(|\s{1,2}(?!\S)|\s{1})re";

constexpr char kDeepseekLlmLetters[] =
    R"re(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293})re"
    R"re(\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C})re"
    R"re(\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5})re"
    R"re(\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B})re"
    R"re(\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45})re"
    R"re(\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4})re"
    R"re(\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB})re"
    R"re(\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115})re"
    R"re(\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F})re"
    R"re(\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2})re"
    R"re(\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E})re"
    R"re(\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A})re"
    R"re(\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2})re"
    R"re(\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)re";
constexpr char kDeepseekLlmSymbols[] =
    R"re(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)re";
constexpr char kDeepseekCjk[] = R"re([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)re";
constexpr char kDeepseekV3Cjk[] = R"re([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)re";
constexpr char kYoutuScripts[] =
    R"re([\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+|[\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014})re"
    R"re(\x{FF1A}\x{FF1B}\x{FF0C}\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+|[\x{3105}-\x{312F}]+|[\x{4E00}-\x{9FA5})re"
    R"re(\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)re";
constexpr char kAfmoeScripts[] =
    R"re([\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{8C48}-\x{FAFF}\x{3040}-\x{309F}\x{30A0}-\x{30FF})re"
    R"re(\x{FF65}-\x{FF9F}\x{2F00}-\x{2FDF}\x{E40}-\x{E7F}\x{E80}-\x{EFF}\x{1780}-\x{17FF}\x{1000}-\x{109F})re"
    R"re(\x{AA60}-\x{AA7F}\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF}\x{1100}-\x{11FF}]+)re";

constexpr Stage kGpt2Stages[] = {{.expression = kGpt2}};
constexpr Stage kLlama3Stages[] = {{.expression = kLlama3}};
constexpr Stage kQwen2Stages[] = {{.expression = kQwen2}};
constexpr Stage kQwen2NoContractionStages[] = {{.expression = kQwen2NoContraction}};
constexpr Stage kQwen35Stages[] = {{.expression = kQwen35}};
constexpr Stage kLagunaStages[] = {{.expression = R"re([^\n]+|[\n]+)re"}, {.expression = kQwen2}};
constexpr Stage kDigitGpt2Stages[] = {{.expression = kNumber}, {.expression = kGpt2}};
constexpr Stage kFalconStages[] = {{.expression = kFalconSymbols}, {.expression = kGpt2}, {.expression = kThreeDigits}};
constexpr Stage kDefaultStages[] = {
    {.expression = kDefaultSymbols}, {.expression = kGpt2}, {.expression = kNumbers}, {.expression = kThreeDigits}};
constexpr Stage kDeepseekLlmStages[] = {
    {.expression = kLineEnd},     {.expression = kDeepseekLlmLetters}, {.expression = kDeepseekLlmSymbols},
    {.expression = kBlanksAtEnd}, {.expression = kDeepseekCjk},        {.expression = kNumbers}};
constexpr Stage kDeepseekCoderStages[] = {{.expression = kLineEnd},
                                          {.expression = R"re(\s?\p{L}+)re"},
                                          {.expression = R"re(\s?\p{P}+)re"},
                                          {.expression = kDeepseekCjk},
                                          {.expression = kNumber}};
constexpr Stage kDeepseekV3Stages[] = {
    {.expression = kNumbersByThree}, {.expression = kDeepseekV3Cjk}, {.expression = kDeepseekV3Words}};
constexpr Stage kO200kStages[] = {{.expression = kO200k}};
constexpr Stage kTekkenStages[] = {{.expression = kTekken}};
constexpr Stage kTinyAyaStages[] = {{.kind = StageKind::kBoundaryDigitGroups}, {.expression = kO200k}};
constexpr Stage kKimiStages[] = {{.expression = kKimi}};
constexpr Stage kBloomStages[] = {{.expression = kBloom}};
constexpr Stage kVikingStages[] = {{.expression = kBloom}, {.expression = kNumber}};
// The same split as the original: its ladder of blank counts only ever applies to the pieces that `\s+(?!\S)|\s+`
// makes.
constexpr Stage kJais2Stages[] = {{.expression = kLlama3}, {.kind = StageKind::kBlankLadder}};
constexpr Stage kSuperBpeStages[] = {{.expression = kNumbers}, {.kind = StageKind::kDigitCuts}};
constexpr Stage kBailingStages[] = {{.expression = kBailing}};
constexpr Stage kSeedCoderStages[] = {{.expression = kSeedCoder}};
constexpr Stage kExaoneMoeStages[] = {{.expression = kExaoneMoe}};
constexpr Stage kYoutuStages[] = {{.expression = kYoutuScripts}, {.expression = kYoutuWords}};
constexpr Stage kChameleonStages[] = {
    {.expression = "<sentinel:[0-9]+>"},           {.expression = "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z"},
    {.expression = R"re(([\t\n]|    |  ))re"},     {.expression = kNumber},
    {.expression = R"re([\p{P}!-/:-@\[-`{-~])re"}, {.expression = kGpt2}};
constexpr Stage kMiniCpm5Stages[] = {{.expression = kNumbersByThree}, {.expression = kMiniCpm5}};
constexpr Stage kAfmoeStages[] = {
    {.kind = StageKind::kNumberGroups}, {.expression = kAfmoeScripts}, {.expression = kDeepseekV3Words}};
constexpr Stage kNewlineStages[] = {{.expression = R"re([^\n]+|[\n]+)re"}};
constexpr Stage kWhitespaceStages[] = {{.expression = R"re(\S+)re"}};

struct Entry {
  std::string_view name;
  PreTokenizer pre;
};

constexpr PreTokenizer plain(std::span<const Stage> stages) { return {.stages = stages}; }
constexpr PreTokenizer nfc(std::span<const Stage> stages) { return {.stages = stages, .nfc = true}; }
constexpr PreTokenizer ignoring_merges(std::span<const Stage> stages) {
  return {.stages = stages, .ignore_merges = true};
}
constexpr PreTokenizer ignoring_merges_with_bos(std::span<const Stage> stages) {
  return {.stages = stages, .ignore_merges = true, .add_bos = true};
}
constexpr PreTokenizer on_characters(std::span<const Stage> stages, bool escape_blanks) {
  return {.stages = stages, .byte_alphabet = false, .escape_blanks = escape_blanks};
}

constexpr Entry kTable[] = {
    {"default", plain(kDefaultStages)},
    {"llama-bpe", ignoring_merges_with_bos(kLlama3Stages)},
    {"llama3", ignoring_merges_with_bos(kLlama3Stages)},
    {"llama-v3", ignoring_merges_with_bos(kLlama3Stages)},
    {"falcon3", ignoring_merges_with_bos(kLlama3Stages)},
    {"falcon-h1", ignoring_merges_with_bos(kLlama3Stages)},
    {"pixtral", ignoring_merges_with_bos(kLlama3Stages)},
    {"midm-2.0", ignoring_merges_with_bos(kLlama3Stages)},
    {"lfm2", ignoring_merges_with_bos(kLlama3Stages)},
    {"jina-v5-nano", ignoring_merges_with_bos(kLlama3Stages)},
    {"smaug-bpe", plain(kLlama3Stages)},
    {"dbrx", plain(kLlama3Stages)},
    {"glm4", plain(kLlama3Stages)},
    {"chatglm-bpe", plain(kLlama3Stages)},
    {"qwen2", nfc(kQwen2Stages)},
    {"deepseek-r1-qwen", nfc(kQwen2Stages)},
    {"stablelm2", nfc(kQwen2Stages)},
    {"kormo", plain(kQwen2Stages)},
    {"megrez", plain(kQwen2Stages)},
    {"f2llmv2", plain(kQwen2Stages)},
    {"openpangu", plain(kQwen2Stages)},
    {"hunyuan", plain(kQwen2Stages)},
    {"solar-open", plain(kQwen2Stages)},
    {"grok-2", plain(kQwen2Stages)},
    {"qwen35", nfc(kQwen35Stages)},
    {"laguna", plain(kLagunaStages)},
    {"ufakzeka", plain(kQwen2NoContractionStages)},
    {"deepseek-llm", plain(kDeepseekLlmStages)},
    {"deepseek-coder", plain(kDeepseekCoderStages)},
    {"deepseek-v3", plain(kDeepseekV3Stages)},
    {"hunyuan-dense", plain(kDeepseekV3Stages)},
    {"joyai-llm", plain(kDeepseekV3Stages)},
    {"hy_v4", plain(kDeepseekV3Stages)},
    {"youtu", ignoring_merges(kYoutuStages)},
    {"gpt-2", plain(kGpt2Stages)},
    {"phi-2", plain(kGpt2Stages)},
    {"gigachat", plain(kGpt2Stages)},
    {"jina-es", plain(kGpt2Stages)},
    {"jina-de", plain(kGpt2Stages)},
    {"jina-v2-es", plain(kGpt2Stages)},
    {"jina-v2-de", plain(kGpt2Stages)},
    {"a.x-4.0", plain(kGpt2Stages)},
    {"mellum", plain(kGpt2Stages)},
    {"modern-bert", plain(kGpt2Stages)},
    {"exaone4", plain(kGpt2Stages)},
    {"jais", plain(kGpt2Stages)},
    {"trillion", plain(kGpt2Stages)},
    {"granite-docling", plain(kGpt2Stages)},
    {"mpt", nfc(kGpt2Stages)},
    {"olmo", nfc(kGpt2Stages)},
    {"roberta-bpe", plain(kGpt2Stages)},
    {"jina-v1-en", plain(kGpt2Stages)},
    {"jina-v2-code", plain(kGpt2Stages)},
    {"starcoder", plain(kDigitGpt2Stages)},
    {"refact", plain(kDigitGpt2Stages)},
    {"smollm", plain(kDigitGpt2Stages)},
    {"codeshell", plain(kDigitGpt2Stages)},
    {"exaone", plain(kDigitGpt2Stages)},
    {"minerva-7b", plain(kDigitGpt2Stages)},
    {"mellum2", plain(kDigitGpt2Stages)},
    {"command-r", nfc(kDigitGpt2Stages)},
    {"falcon", plain(kFalconStages)},
    {"gpt-4o", plain(kO200kStages)},
    {"llama4", plain(kO200kStages)},
    {"kanana2", plain(kO200kStages)},
    {"minimax-m2", plain(kO200kStages)},
    {"talkie", plain(kO200kStages)},
    {"granite-embed-multi-97m", ignoring_merges(kO200kStages)},
    {"tekken", ignoring_merges_with_bos(kTekkenStages)},
    {"tiny_aya", plain(kTinyAyaStages)},
    {"cohere2moe", plain(kTinyAyaStages)},
    {"kimi-k2", plain(kKimiStages)},
    {"bloom", plain(kBloomStages)},
    {"poro-chat", plain(kBloomStages)},
    {"gpt3-finnish", plain(kBloomStages)},
    {"viking", plain(kVikingStages)},
    {"jais-2", plain(kJais2Stages)},
    {"superbpe", plain(kSuperBpeStages)},
    {"bailingmoe", plain(kBailingStages)},
    {"bailingmoe2", plain(kBailingStages)},
    {"llada-moe", plain(kBailingStages)},
    {"seed-coder", plain(kSeedCoderStages)},
    {"exaone-moe", plain(kExaoneMoeStages)},
    {"chameleon", {.stages = kChameleonStages, .add_bos = true}},
    {"minicpm5", ignoring_merges(kMiniCpm5Stages)},
    {"afmoe", plain(kAfmoeStages)},
    {"gemma4", on_characters(kNewlineStages, true)},
    {"sarvam-moe", on_characters(kNewlineStages, true)},
    {"granite-embed-multi-311m", on_characters(kNewlineStages, true)},
    {"whitespace", on_characters(kWhitespaceStages, false)},
};

}  // namespace

const PreTokenizer* find_pre_tokenizer(std::string_view name) {
  const auto found = std::find_if(std::begin(kTable), std::end(kTable), [&](const Entry& e) { return e.name == name; });
  return found == std::end(kTable) ? nullptr : &found->pre;
}

std::vector<std::string_view> pre_tokenizer_names() {
  std::vector<std::string_view> names;
  for (const Entry& entry : kTable) names.push_back(entry.name);
  return names;
}

void append_stages(std::string_view expression, std::vector<Stage>& stages) {
  if (expression == kBlanksAtEndOriginal) {
    stages.push_back({.expression = kBlanksAtEnd});
  } else if (expression == kDigitCutsOriginal) {
    stages.push_back({.kind = StageKind::kDigitCuts});
  } else if (expression == kBoundaryDigitsOriginal) {
    stages.push_back({.kind = StageKind::kBoundaryDigitGroups});
  } else if (expression == kExaoneMoeOriginal) {
    stages.push_back({.expression = kExaoneMoe});
  } else if (expression == kKimiOriginal) {
    stages.push_back({.expression = kKimi});
  } else if (expression == kJais2Original) {
    stages.insert(stages.end(), std::begin(kJais2Stages), std::end(kJais2Stages));
  } else {
    stages.push_back({.expression = expression});
  }
}

}  // namespace hk::tokenizer
