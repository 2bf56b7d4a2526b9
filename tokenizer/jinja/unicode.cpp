// Unicode properties and case mapping.
#include "tokenizer/jinja/unicode.h"

#include <utf8proc.h>

namespace hk::tokenizer::jinja {
namespace {

utf8proc_category_t category(char32_t value) {
  if (value > 0x10FFFF) return UTF8PROC_CATEGORY_CN;
  return utf8proc_category(static_cast<utf8proc_int32_t>(value));
}

bool within(char32_t value, char32_t first, char32_t last) { return value >= first && value <= last; }

char32_t simple_lower(char32_t value) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(value)));
}
char32_t simple_upper(char32_t value) {
  return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(value)));
}
char32_t simple_title(char32_t value) {
  return static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(value)));
}

/// Marks that do not end a word when looking for the final sigma.
bool is_case_ignorable(char32_t value) {
  switch (category(value)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      break;
  }
  return value == '\'' || value == '.' || value == ':' || value == 0xB7 || value == 0x2018 || value == 0x2019 ||
         value == 0x2024 || value == 0x2027 || value == 0x387 || value == 0x55F || value == 0x5F4;
}

/// A capital sigma at the end of a word is written differently in lower case.
bool is_final_sigma(std::string_view bytes, std::size_t at, std::size_t size) {
  std::size_t before = at;
  bool preceded = false;
  while (before > 0) {
    before = previous_start(bytes, before);
    const char32_t value = decode_at(bytes, before).value;
    if (is_case_ignorable(value)) continue;
    preceded = is_cased(value);
    break;
  }
  if (!preceded) return false;
  for (std::size_t after = at + size; after < bytes.size();) {
    const CodePoint point = decode_at(bytes, after);
    after += point.size;
    if (is_case_ignorable(point.value)) continue;
    return !is_cased(point.value);
  }
  return true;
}

class CaseMapper {
 public:
  explicit CaseMapper(const Text& text) : text_(text), bytes_(text.view()) {}

  void put_mapped(char32_t mapped) {
    scratch_.clear();
    encode_to(scratch_, mapped);
    out_.append(scratch_, text_.origin_at(at_));
  }
  void put_special(const SpecialCase& special) {
    for (const char32_t value : special.to)
      if (value != 0) put_mapped(value);
  }
  void upper() {
    if (const auto* special = special_upper(point_.value)) return put_special(*special);
    put_if_changed(simple_upper(point_.value));
  }
  void title() {
    if (const auto* special = special_title(point_.value)) return put_special(*special);
    put_if_changed(simple_title(point_.value));
  }
  void lower() {
    if (point_.value == 0x130) {  // capital I with dot: the dot survives as a mark
      put_mapped('i');
      return put_mapped(0x307);
    }
    if (point_.value == 0x3A3) return put_mapped(is_final_sigma(bytes_, at_, point_.size) ? 0x3C2 : 0x3C3);
    put_if_changed(simple_lower(point_.value));
  }
  void keep() { out_.append(text_, at_, at_ + point_.size); }

  template <typename Step>
  Text run(Step&& step) {
    for (at_ = 0; at_ < bytes_.size(); at_ += point_.size) {
      point_ = decode_at(bytes_, at_);
      step(point_.value);
    }
    return std::move(out_);
  }

 private:
  void put_if_changed(char32_t mapped) {
    if (mapped == point_.value) return keep();  // also keeps invalid bytes as they are
    put_mapped(mapped);
  }

  const Text& text_;
  std::string_view bytes_;
  std::size_t at_ = 0;
  CodePoint point_{};
  Text out_;
  std::string scratch_;
};

}  // namespace

bool is_space(char32_t value) {
  return within(value, 0x09, 0x0D) || within(value, 0x1C, 0x20) || value == 0x85 || value == 0xA0 || value == 0x1680 ||
         within(value, 0x2000, 0x200A) || value == 0x2028 || value == 0x2029 || value == 0x202F || value == 0x205F ||
         value == 0x3000;
}

bool is_printable(char32_t value) {
  if (value == ' ') return true;
  if (value < 0x7F) return value > ' ';
  switch (category(value)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

bool is_letter(char32_t value) {
  switch (category(value)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return true;
    default:
      return false;
  }
}

bool is_decimal(char32_t value) {
  return value < 0x80 ? within(value, '0', '9') : category(value) == UTF8PROC_CATEGORY_ND;
}

bool is_digit(char32_t value) {
  return is_decimal(value) || value == 0xB2 || value == 0xB3 || value == 0xB9 || within(value, 0x1369, 0x1371) ||
         value == 0x2070 || within(value, 0x2074, 0x2079) || within(value, 0x2080, 0x2089) ||
         within(value, 0x2460, 0x2468) || within(value, 0x2474, 0x247C) || within(value, 0x2488, 0x2490) ||
         value == 0x24EA || within(value, 0x24F5, 0x24FD) || value == 0x24FF || within(value, 0x2776, 0x277E) ||
         within(value, 0x2780, 0x2788) || within(value, 0x278A, 0x2792);
}

bool is_numeric(char32_t value) {
  if (is_decimal(value)) return true;
  if (value < 0x80) return false;
  const auto kind = category(value);
  if (kind == UTF8PROC_CATEGORY_NL || kind == UTF8PROC_CATEGORY_NO) return true;
  // Han numerals; they are letters by category.
  static constexpr char32_t kHan[] = {0x3007, 0x4E00, 0x4E03, 0x4E07, 0x4E09, 0x4E5D, 0x4E8C, 0x4E94, 0x4EBF,
                                      0x5146, 0x516B, 0x516D, 0x5341, 0x5343, 0x56DB, 0x767E, 0x842C, 0x5104};
  for (const char32_t numeral : kHan)
    if (value == numeral) return true;
  return false;
}

bool is_upper(char32_t value) {
  if (value < 0x80) return within(value, 'A', 'Z');
  return category(value) == UTF8PROC_CATEGORY_LU || within(value, 0x2160, 0x216F) || within(value, 0x24B6, 0x24CF) ||
         within(value, 0x1F130, 0x1F149) || within(value, 0x1F150, 0x1F169) || within(value, 0x1F170, 0x1F189);
}

bool is_lower(char32_t value) {
  if (value < 0x80) return within(value, 'a', 'z');
  return category(value) == UTF8PROC_CATEGORY_LL || value == 0xAA || value == 0xBA || within(value, 0x2B0, 0x2B8) ||
         within(value, 0x2C0, 0x2C1) || within(value, 0x2E0, 0x2E4) || value == 0x345 || value == 0x37A ||
         within(value, 0x1D2C, 0x1D6A) || value == 0x1D78 || within(value, 0x1D9B, 0x1DBF) || value == 0x2071 ||
         value == 0x207F || within(value, 0x2090, 0x209C) || within(value, 0x2170, 0x217F) ||
         within(value, 0x24D0, 0x24E9) || within(value, 0x2C7C, 0x2C7D) || within(value, 0xA69C, 0xA69D) ||
         value == 0xA770 || within(value, 0xA7F8, 0xA7F9) || within(value, 0xAB5C, 0xAB5F);
}

bool is_title(char32_t value) { return value >= 0x80 && category(value) == UTF8PROC_CATEGORY_LT; }

bool is_identifier_start(char32_t value) {
  if (value < 0x80) return within(value, 'a', 'z') || within(value, 'A', 'Z') || value == '_';
  return is_letter(value) || category(value) == UTF8PROC_CATEGORY_NL;
}

bool is_identifier_part(char32_t value) {
  if (is_identifier_start(value) || is_decimal(value)) return true;
  if (value < 0x80) return false;
  switch (category(value)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return value == 0xB7 || value == 0x387;
  }
}

int decimal_value(char32_t value) {
  if (value < 0x80) return within(value, '0', '9') ? static_cast<int>(value - '0') : -1;
  if (!is_decimal(value)) return -1;
  // Decimal digits come in runs of ten that start at a zero.
  if (within(value, 0x1D7CE, 0x1D7FF)) return static_cast<int>((value - 0x1D7CE) % 10);
  char32_t zero = value;
  while (value - zero < 9 && is_decimal(zero - 1)) --zero;
  return static_cast<int>(value - zero);
}

bool is_line_break(char32_t value) {
  return within(value, 0x0A, 0x0D) || within(value, 0x1C, 0x1E) || value == 0x85 || value == 0x2028 || value == 0x2029;
}

Text to_upper(const Text& text) {
  CaseMapper mapper(text);
  return mapper.run([&](char32_t) { mapper.upper(); });
}

Text to_lower(const Text& text) {
  CaseMapper mapper(text);
  return mapper.run([&](char32_t) { mapper.lower(); });
}

Text to_title(const Text& text) {
  CaseMapper mapper(text);
  bool inside_word = false;
  return mapper.run([&](char32_t value) {
    inside_word ? mapper.lower() : mapper.title();
    inside_word = is_cased(value);
  });
}

Text to_capitalized(const Text& text) {
  CaseMapper mapper(text);
  bool first = true;
  return mapper.run([&](char32_t) {
    first ? mapper.title() : mapper.lower();
    first = false;
  });
}

Text to_swapped(const Text& text) {
  CaseMapper mapper(text);
  return mapper.run([&](char32_t value) {
    if (is_upper(value)) return mapper.lower();
    if (is_lower(value)) return mapper.upper();
    mapper.keep();
  });
}

Text to_casefolded(const Text& text) {
  CaseMapper mapper(text);
  return mapper.run([&](char32_t value) {
    if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return mapper.keep();
    utf8proc_int32_t folded[8];
    int boundary = 0;
    const auto count =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(value), folded, 8, UTF8PROC_CASEFOLD, &boundary);
    if (count < 1 || count > 8) return mapper.keep();
    for (utf8proc_ssize_t i = 0; i < count; ++i) mapper.put_mapped(static_cast<char32_t>(folded[i]));
  });
}

}  // namespace hk::tokenizer::jinja
