// The parts of the line editor without a terminal: keys, editing, layout, painting and the history file.
#include <gtest/gtest.h>

#include <clocale>
#include <fstream>

#include "cli/line_editor/edit_buffer.h"
#include "cli/line_editor/input_history.h"
#include "cli/line_editor/keys.h"
#include "cli/line_editor/line_painter.h"
#include "tests/support/fixtures.h"

namespace hk::test {
namespace {

using cli::EditBuffer;
using cli::InputHistory;
using cli::KeyDecoder;
using cli::KeyKind;

struct Locale {
  Locale() { std::setlocale(LC_CTYPE, "C.UTF-8"); }
} g_locale;

std::vector<cli::Key> decode(const std::string& bytes, std::size_t step) {
  KeyDecoder decoder;
  std::vector<cli::Key> keys;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    decoder.feed(bytes.substr(at, step));
    while (auto key = decoder.next()) keys.push_back(*key);
  }
  while (auto key = decoder.flush()) keys.push_back(*key);
  return keys;
}

void expect_keys(const std::string& bytes, const std::vector<KeyKind>& kinds) {
  for (std::size_t step = 1; step <= bytes.size(); ++step) {
    const auto keys = decode(bytes, step);
    ASSERT_EQ(keys.size(), kinds.size()) << step;
    for (std::size_t i = 0; i < kinds.size(); ++i) EXPECT_EQ(keys[i].kind, kinds[i]) << i << " at step " << step;
  }
}

TEST(Keys, Sequences) {
  using K = KeyKind;
  expect_keys("a\xc3\xa9\xe6\x97\xa5", {K::kText, K::kText, K::kText});
  expect_keys("\x1b[A\x1b[B\x1bOC\x1b[D", {K::kUp, K::kDown, K::kRight, K::kLeft});
  expect_keys("\x1b[1;5C\x1b[1;3D\x1b[1;2C", {K::kWordRight, K::kWordLeft, K::kRight});
  expect_keys("\x1b[H\x1b[4~\x1b[3~\x1b[1~", {K::kHome, K::kEnd, K::kDelete, K::kHome});
  expect_keys("\r\x1b\r\n", {K::kEnter, K::kNewLine, K::kEnter});
  expect_keys("\x1b[13;3u\x1b[27;3;13~", {K::kNewLine, K::kNewLine});
  expect_keys("\x01\x03\x04\x7f\x08\x1a",
              {K::kHome, K::kInterrupt, K::kEndOfInput, K::kBackspace, K::kBackspace, K::kSuspend});
  expect_keys("\x1b", {K::kAbort});
  expect_keys("\x1b[99x", {K::kOther});
  expect_keys("\xff", {K::kOther});
  expect_keys("\xc2\x85", {K::kOther});  // a control character of two bytes
}

TEST(Keys, PastedTextIsOneKey) {
  const std::string paste = "\x1b[200~one\r\ntwo\rthree\x1b[31m\x07\xff\t\xc3\xa9\x1b[201~";
  for (std::size_t step = 1; step <= paste.size(); ++step) {
    const auto keys = decode(paste + "x", step);
    ASSERT_EQ(keys.size(), 2u) << step;
    EXPECT_EQ(keys[0].kind, KeyKind::kPaste);
    EXPECT_EQ(keys[0].text, "one\ntwo\nthree[31m\t\xc3\xa9");
    EXPECT_EQ(keys[1].text, "x");
  }
}

TEST(EditBuffers, EditingOverLines) {
  EditBuffer buffer;
  buffer.insert(
      "first line\nse\xcc\x81"
      "cond \xe6\x97\xa5\nthird");  // a combining accent, a wide character
  EXPECT_TRUE(buffer.up());
  EXPECT_TRUE(buffer.up());
  EXPECT_FALSE(buffer.up());
  EXPECT_EQ(buffer.cursor(), 5u);
  buffer.word_left();
  EXPECT_EQ(buffer.cursor(), 0u);
  buffer.cut_to_line_end();
  EXPECT_EQ(buffer.text(),
            "\nse\xcc\x81"
            "cond \xe6\x97\xa5\nthird");
  EXPECT_TRUE(buffer.down());
  buffer.line_end();
  buffer.erase_left();
  buffer.line_begin();
  buffer.right();
  buffer.right();
  EXPECT_EQ(buffer.cursor(), 5u);  // the accent went with its letter
  buffer.erase_left();
  EXPECT_EQ(buffer.text(), "\nscond \nthird");
  buffer.set("a b");
  buffer.insert_cut();
  EXPECT_EQ(buffer.text(), "a bfirst line");
  buffer.erase_word_left();
  buffer.erase_word_left();
  EXPECT_EQ(buffer.text(), "a ");
  buffer.set("end\\");
  EXPECT_TRUE(buffer.ends_in_backslash());
  buffer.left();
  EXPECT_FALSE(buffer.ends_in_backslash());
  buffer.set("");
  buffer.left();
  buffer.erase_left();
  buffer.erase_right();
  EXPECT_TRUE(buffer.empty());
}

TEST(Layout, RowsAreBrokenAtTheWidthOfCharacters) {
  const auto rows = [](const std::string& text, std::size_t cursor, std::size_t columns) {
    return cli::lay_out("\x1b[1m>\x1b[0m ", "  ", text, cursor, columns);
  };
  auto layout = rows("abcdef", 6, 8);
  ASSERT_EQ(layout.rows.size(), 2u);  // the cursor behind a full row
  EXPECT_EQ(layout.rows[0].width, 8u);
  EXPECT_EQ(layout.cursor_row, 1u);
  EXPECT_EQ(layout.cursor_column, 0u);
  layout = rows("ab\ncd", 3, 8);
  ASSERT_EQ(layout.rows.size(), 2u);
  EXPECT_EQ(layout.rows[1].text, "  cd");
  EXPECT_EQ(layout.cursor_column, 2u);
  layout = rows("abc\xe6\x97\xa5", 0, 6);  // the wide character does not fit
  ASSERT_EQ(layout.rows.size(), 2u);
  EXPECT_EQ(layout.rows[1].width, 2u);
  EXPECT_EQ(layout.cursor_row, 0u);
  EXPECT_EQ(layout.cursor_column, 2u);
  EXPECT_EQ(rows("", 0, 1).cursor_row, 1u);  // a window that is no window
}

TEST(Layout, OfTooManyRowsThoseAroundTheCursorAreShown) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "line " + std::to_string(i) + "\n";
  cli::LinePainter painter;
  const auto layout = cli::lay_out("> ", "  ", text, text.find("line 25"), 40);
  const auto painted = painter.paint(layout, 40, 10);
  EXPECT_NE(painted.find("line 25"), std::string::npos);
  EXPECT_EQ(std::count(painted.begin(), painted.end(), '\n'), 9);
  // Drawn again, it goes up to its first row.
  EXPECT_TRUE(painter.paint(layout, 40, 10).starts_with("\x1b[5A\r\x1b[J"));
  // In a window half as wide nothing was broken; one of 5 columns has broken the rows above the cursor in two.
  EXPECT_TRUE(painter.paint(layout, 5, 10).starts_with("\x1b[10A\r\x1b[J"));
}

TEST(History, FileIsReadAgainAndCut) {
  TemporaryFolder folder;
  const auto path = (folder.path() / "deep/history").string();
  {
    InputHistory history(path);
    history.add("one");
    history.add("one");
    history.add("two\nlines \\ and \\n");
    history.add("");
  }
  std::ofstream(path, std::ios::app) << "\xff broken\n\nthree\ncut by a ki";
  InputHistory history(path);
  ASSERT_EQ(history.size(), 3u);
  EXPECT_EQ(history[1], "two\nlines \\ and \\n");
  EXPECT_EQ(history[2], "three");
  EXPECT_EQ(history.find_before(3, "o"), 1u);
  EXPECT_EQ(history.find_before(1, "o"), 0u);
  EXPECT_EQ(history.find_before(0, "o"), 3u);
  {
    std::ofstream out(path, std::ios::app);
    for (int i = 0; i < 3000; ++i) out << "\n" << i;
    out << "\n";
  }
  InputHistory longer(path);
  EXPECT_EQ(longer.size(), 1000u);
  EXPECT_EQ(longer[999], "2999");
  std::ifstream in(path);
  EXPECT_EQ(std::count(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>(), '\n'), 1000);
  InputHistory nowhere("");
  nowhere.add("x");
  EXPECT_EQ(nowhere.size(), 1u);
  InputHistory unwritable("/proc/nothing/history");
  unwritable.add("x");
  EXPECT_EQ(unwritable.size(), 1u);
}

}  // namespace
}  // namespace hk::test
