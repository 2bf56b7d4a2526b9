// NFC against utf8proc's own composition, and on runs of marks that it would sort for minutes.
#include "tokenizer/nfc.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <cstdlib>
#include <random>

namespace hk::tokenizer {
namespace {

std::string nfc(std::string_view text) {
  std::string storage;
  return std::string(to_nfc(text, storage));
}

std::string reference_nfc(const std::string& text) {
  utf8proc_uint8_t* out = nullptr;
  const auto length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &out, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  EXPECT_GE(length, 0);
  std::string result(reinterpret_cast<char*>(out), static_cast<std::size_t>(length));
  std::free(out);
  return result;
}

void append_utf8(char32_t c, std::string& out) {
  utf8proc_uint8_t bytes[4];
  const auto n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), bytes);
  out.append(reinterpret_cast<char*>(bytes), static_cast<std::size_t>(n));
}

TEST(Nfc, EveryCharacterAlone) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text = "a";
    append_utf8(c, text);
    ASSERT_EQ(nfc(text), reference_nfc(text)) << "U+" << std::hex << static_cast<unsigned>(c);
  }
}

TEST(Nfc, EveryPairOfInterest) {
  // Ranges that compose, decompose or reorder, and neighbours that do not.
  static constexpr std::pair<char32_t, char32_t> kRanges[] = {
      {0x20, 0x7E},     {0xA0, 0x24F},    {0x300, 0x36F},   {0x370, 0x3FF},   {0x400, 0x4FF},     {0x5D0, 0x5EA},
      {0x591, 0x5C7},   {0x622, 0x660},   {0x915, 0x94D},   {0x9BC, 0x9DD},   {0xB47, 0xB57},     {0xE01, 0xE4D},
      {0xF40, 0xF84},   {0x1100, 0x11FF}, {0x1E00, 0x1FFF}, {0x2000, 0x2030}, {0x2126, 0x212B},   {0x3040, 0x30FF},
      {0x4E00, 0x4E08}, {0xAC00, 0xAC40}, {0xF900, 0xFA20}, {0xFB1D, 0xFB4E}, {0x11099, 0x110BA}, {0x1D15E, 0x1D1C0}};
  std::mt19937 random(9);
  for (int round = 0; round < 60000; ++round) {
    std::string text;
    for (std::size_t n = 1 + random() % 8; n-- > 0;) {
      const auto& [low, high] = kRanges[random() % std::size(kRanges)];
      append_utf8(low + static_cast<char32_t>(random() % (high - low + 1)), text);
    }
    ASSERT_EQ(nfc(text), reference_nfc(text)) << text;
  }
}

TEST(Nfc, LeavesNormalTextWhereItIs) {
  std::string storage;
  for (const std::string_view text :
       {"", "plain", "d\xC3\xA9j\xC3\xA0 vu", "\xD0\xBF\xD1\x80\xD0\xB8", "\xE4\xBD\xA0\xE5\xA5\xBD"}) {
    EXPECT_EQ(to_nfc(text, storage).data(), text.data());
  }
}

TEST(Nfc, OrdersLongRunsOfMarks) {
  std::string text = "a", expected = "a";
  const int pairs = 200000;
  for (int i = 0; i < pairs; ++i) text += "\xCC\x81\xCC\xA3";  // acute, dot below: each pair stands in the wrong order
  const std::string result = nfc(text);
  expected = "\xE1\xBA\xA1";  // a with dot below
  for (int i = 1; i < pairs; ++i) expected += "\xCC\xA3";
  for (int i = 0; i < pairs; ++i) expected += "\xCC\x81";
  EXPECT_EQ(result, expected);
}

}  // namespace
}  // namespace hk::tokenizer
