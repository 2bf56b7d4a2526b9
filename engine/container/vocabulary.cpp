// Reads tokenizer.ggml.* and tokenizer.hk.* into a VocabularySource.
#include "engine/container/vocabulary.h"

#include <fmt/format.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace hk::engine {
namespace {

using tokenizer::TokenId;

/// What the source points into when the file's own bytes cannot be used in place.
struct Owned {
  std::string file;
  StringArray tokens;
  StringArray merges;
  std::vector<float> scores;
  std::vector<std::int32_t> types;
};

class KeyReader {
 public:
  KeyReader(const ModelReader& reader) : file_(reader.path()), metadata_(reader.metadata()) {}

  /// The key's name in this file: some tools leave out the `ggml.` part. The usual name when neither is there.
  std::string key(std::string_view name) const {
    std::string usual = fmt::format("tokenizer.ggml.{}", name);
    std::string other = fmt::format("tokenizer.{}", name);
    return !metadata_.contains(usual) && metadata_.contains(other) ? other : usual;
  }

  std::optional<TokenId> id(std::string_view name) const {
    const std::string where = key(name);
    const auto value = metadata_.integer(where);
    // Writers without such a token store -1, in 32 bits signed or unsigned.
    if (!value || *value == -1 || *value == std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
    if (*value < 0 || *value > std::numeric_limits<TokenId>::max())
      throw Error(fmt::format("{}: {} is {}, which is no token id", file_, where, *value));
    return static_cast<TokenId>(*value);
  }

  std::optional<bool> flag(std::string_view name) const { return metadata_.boolean(key(name)); }
  std::optional<std::string_view> text(std::string_view name) const { return metadata_.string(key(name)); }
  std::optional<StringArray> texts(std::string_view name) const { return metadata_.strings(key(name)); }

  std::span<const float> floats(std::string_view name, std::vector<float>& copy) const {
    const std::string where = key(name);
    const auto in_place = metadata_.floats_in_place(where);
    if (!in_place.empty()) return in_place;
    if (auto values = metadata_.floats(where)) copy = std::move(*values);
    return copy;
  }
  std::span<const std::int32_t> integers(std::string_view name, std::vector<std::int32_t>& copy) const {
    const std::string where = key(name);
    const auto in_place = metadata_.integers_in_place(where);
    if (!in_place.empty()) return in_place;
    if (auto values = metadata_.integers(where)) copy = std::move(*values);
    return copy;
  }

 private:
  const std::string& file_;
  const Metadata& metadata_;
};

}  // namespace

std::unique_ptr<tokenizer::Tokenizer> make_tokenizer(const ModelReader& reader) {
  const Metadata& metadata = reader.metadata();
  const KeyReader keys(reader);
  auto owned = std::make_shared<Owned>();
  owned->file = reader.path();
  tokenizer::VocabularySource source;
  source.file = owned->file;

  auto tokens = keys.texts("tokens");
  if (!tokens || tokens->size() == 0)
    throw Error(
        fmt::format("{}: the file has no vocabulary: there is no list of tokens (tokenizer.ggml.tokens)", source.file));
  owned->tokens = std::move(*tokens);
  source.token_count = owned->tokens.size();
  source.token = [owned](std::size_t i) { return owned->tokens[i]; };
  if (auto merges = keys.texts("merges")) {
    owned->merges = std::move(*merges);
    source.merge_count = owned->merges.size();
    source.merge = [owned](std::size_t i) { return owned->merges[i]; };
  }
  source.scores = keys.floats("scores", owned->scores);
  source.token_types = keys.integers("token_type", owned->types);

  source.model = keys.text("model").value_or(std::string_view());
  source.pre = keys.text("pre");
  source.general_name = metadata.string("general.name").value_or(std::string_view());
  if (const auto expressions = metadata.strings("tokenizer.hk.pre_regex"))
    for (std::size_t i = 0; i < expressions->size(); ++i) source.pre_regex.emplace_back((*expressions)[i]);
  if (const auto ids = metadata.integers("tokenizer.hk.eog_ids")) source.eog_ids = *ids;

  source.bos = keys.id("bos_token_id");
  source.eos = keys.id("eos_token_id");
  source.unknown = keys.id("unknown_token_id");
  source.padding = keys.id("padding_token_id");
  source.eot = keys.id("eot_token_id");
  source.eom = keys.id("eom_token_id");
  source.fim_pad = keys.id("fim_pad_token_id");
  source.add_bos = keys.flag("add_bos_token");
  source.add_eos = keys.flag("add_eos_token");
  source.add_space_prefix = keys.flag("add_space_prefix");
  source.ignore_merges = keys.flag("ignore_merges");
  return tokenizer::Tokenizer::create(std::move(source));
}

}  // namespace hk::engine
