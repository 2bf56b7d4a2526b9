// Unicode normalisation form C, by utf8proc's data, in linear time on any input.
//
// Layer: tokenizer. utf8proc_NFC itself sorts combining marks by exchange, quadratic on a long run of marks; here runs
// are sorted first and utf8proc decomposes and composes.
#pragma once

#include <string>
#include <string_view>

namespace hk::tokenizer {

/// `text` in NFC: either `text` itself, when a quick look shows that nothing changes, or a view of `storage`.
/// `text` must be valid UTF-8.
std::string_view to_nfc(std::string_view text, std::string& storage);

}  // namespace hk::tokenizer
