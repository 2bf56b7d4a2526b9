// Attention of one ISA level: writing keys and values into pages, one page against the queries that share its head, and
// the merge of partial results.
//
// Positions are lanes of scores and dimensions are lanes of values, so nothing needs a horizontal sum
// (kernels/kv_type.h).
#include "kernels/isa/attention_float.h"
#include "kernels/isa/attention_int8.h"
#include "kernels/isa/level.h"

namespace hk::kernels {
namespace {

HK_INLINE std::uint16_t upper_half(float x) { return static_cast<std::uint16_t>(as_i(set_f(x))[0] >> 16 & 0xFFFF); }

template <KvType kType>
HK_INLINE void store_key_words(const float* k, std::size_t head_size, std::size_t position, std::uint16_t* page) {
  const std::size_t base = position / kKeyGroup * kKeyGroup * head_size + position % kKeyGroup;
  for_lanes(head_size, [&](std::size_t d, int count) HK_LAMBDA_INLINE {
    alignas(64) std::uint16_t words[W];
    to_words<kType>(words, load_some(k + d, count));
    for (int i = 0; i < count; ++i) page[base + (d + i) * kKeyGroup] = words[i];
  });
}

template <KvType kType>
HK_INLINE void store_value_words(const float* v, std::size_t value_size, std::size_t position, std::uint16_t* page) {
  for_lanes(value_size, [&](std::size_t d, int count) HK_LAMBDA_INLINE {
    alignas(64) std::uint16_t words[W];
    to_words<kType>(words, load_some(v + d, count));
    for (int i = 0; i < count; ++i) page[position * value_size + d + i] = words[i];
  });
}

/// `n` of `size` values (the rest counts as zeros) as codes and a scale.
HK_INLINE std::uint16_t quantize_block(const float* x, std::size_t n, std::size_t size, float* padded,
                                       std::int8_t* codes) {
  copy_padded(padded, x, n, size);
  return upper_half(quantize_short_scale(padded, static_cast<int>(size), codes));
}

HK_INLINE void store_key_codes(const float* k, std::size_t head_size, std::size_t position, std::uint8_t* page) {
  page += position / kKeyGroup * key_group_bytes(head_size);
  const std::size_t lane = position % kKeyGroup;
  for (std::size_t d = 0; d < head_size; d += kKeyBlock) {
    alignas(64) float padded[kKeyBlock];
    std::int8_t codes[kKeyBlock];
    const std::size_t n = head_size - d < kKeyBlock ? head_size - d : kKeyBlock;
    const std::uint16_t scale = quantize_block(k + d, n, kKeyBlock, padded, codes);
    for (std::size_t i = 0; i < n; i += kDotBytes)
      __builtin_memcpy(page + ((d + i) / kDotBytes * kKeyGroup + lane) * kDotBytes, codes + i, kDotBytes);
    __builtin_memcpy(page + key_code_bytes(head_size) + (d / kKeyBlock * kKeyGroup + lane) * 2, &scale, 2);
  }
}

HK_INLINE void store_value_codes(const float* v, std::size_t value_size, std::size_t position, std::uint8_t* page) {
  std::uint8_t* row = page + position / kDotBytes * value_size * kDotBytes + position % kDotBytes;
  for (std::size_t d = 0; d < value_size; d += kValueBlock) {
    alignas(64) float padded[kValueBlock];
    std::int8_t codes[kValueBlock];
    const std::size_t n = value_size - d < kValueBlock ? value_size - d : kValueBlock;
    const std::uint16_t scale = quantize_block(v + d, n, round_up(n, 16), padded, codes);
    for (std::size_t i = 0; i < n; ++i) row[(d + i) * kDotBytes] = static_cast<std::uint8_t>(codes[i]);
    __builtin_memcpy(page + kKvPage * value_size + (d / kValueBlock * kKvPage + position) * 2, &scale, 2);
  }
}

}  // namespace

namespace HK_LEVEL {

void store_key(const float* k, std::size_t head_size, KvType type, std::size_t position, void* page) {
  switch (type) {
    case KvType::kF32: {
      const std::size_t base = position / kKeyGroup * kKeyGroup * head_size + position % kKeyGroup;
      for (std::size_t d = 0; d < head_size; ++d) static_cast<float*>(page)[base + d * kKeyGroup] = k[d];
      return;
    }
    case KvType::kF16:
      return store_key_words<KvType::kF16>(k, head_size, position, static_cast<std::uint16_t*>(page));
    case KvType::kBf16:
      return store_key_words<KvType::kBf16>(k, head_size, position, static_cast<std::uint16_t*>(page));
    case KvType::kQ8_0:
      return store_key_codes(k, head_size, position, static_cast<std::uint8_t*>(page));
  }
}

void store_value(const float* v, std::size_t value_size, KvType type, std::size_t position, void* page) {
  switch (type) {
    case KvType::kF32:
      __builtin_memcpy(static_cast<float*>(page) + position * value_size, v, value_size * sizeof(float));
      return;
    case KvType::kF16:
      return store_value_words<KvType::kF16>(v, value_size, position, static_cast<std::uint16_t*>(page));
    case KvType::kBf16:
      return store_value_words<KvType::kBf16>(v, value_size, position, static_cast<std::uint16_t*>(page));
    case KvType::kQ8_0:
      return store_value_codes(v, value_size, position, static_cast<std::uint8_t*>(page));
  }
}

void attend_page(const AttendPageArgs& args) {
  for (std::size_t i = 0; i < args.n; i += kQueryChunk) {
    AttendPageArgs chunk = args;
    chunk.n = args.n - i < kQueryChunk ? args.n - i : kQueryChunk;
    chunk.q += i;
    chunk.first += i;
    chunk.last += i;
    if (args.slope != nullptr) {
      chunk.slope += i;
      chunk.distance += i;
    }
    chunk.max += i;
    chunk.sum += i;
    chunk.acc += i;
    chunk.again = args.again && args.n <= kQueryChunk;
    if (i + kQueryChunk < args.n) chunk.next = args.k;
    switch (args.type) {
      case KvType::kF32:
        attend_floats<KvType::kF32>(chunk);
        break;
      case KvType::kF16:
        attend_floats<KvType::kF16>(chunk);
        break;
      case KvType::kBf16:
        attend_floats<KvType::kBf16>(chunk);
        break;
      case KvType::kQ8_0:
        attend_codes(chunk);
        break;
    }
  }
}

void attend_merge(float* max, float* sum, float* acc, float page_max, float page_sum, const float* page_acc,
                  std::size_t value_size) {
  if (page_sum == 0) return;  // nothing visible in the page
  if (*sum == 0) {
    // nothing before it
    *max = page_max;
    *sum = page_sum;
    __builtin_memcpy(acc, page_acc, value_size * sizeof(float));
    return;
  }
  // exp of one lane, by the same polynomial as everywhere; of the larger one it is 1
  const bool larger = page_max > *max;
  const float other = exp_f(set_f(larger ? *max - page_max : page_max - *max))[0];
  const float keep = larger ? other : 1.0f, take = larger ? 1.0f : other;
  if (larger) *max = page_max;
  *sum = *sum * keep + page_sum * take;
  for_lanes(value_size, [&](std::size_t d, int count) HK_LAMBDA_INLINE {
    store_some(acc + d, fma(load_some(page_acc + d, count), set_f(take), load_some(acc + d, count) * keep), count);
  });
}

}  // namespace HK_LEVEL
}  // namespace hk::kernels
