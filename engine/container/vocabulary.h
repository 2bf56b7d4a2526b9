// From a model file's metadata to its tokenizer.
//
// Layer: engine/container. The one place that knows the tokenizer's metadata keys; `tokenizer` itself knows no file.
#pragma once

#include <memory>

#include "engine/container/model_reader.h"
#include "tokenizer/tokenizer.h"

namespace hk::engine {

/// Token texts and merges are read where they lie: the reader must outlive the tokenizer.
/// Throws hk::Error when the file has no vocabulary or one that cannot be used.
std::unique_ptr<tokenizer::Tokenizer> make_tokenizer(const ModelReader& reader);

}  // namespace hk::engine
