// Checks of a whole model: metadata, tensors, where things lie in the file, appendix.
#include "engine/container/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/utf8.h"
#include "engine/container/appendix.h"
#include "engine/container/hk_reader.h"
#include "engine/container/metadata_blob.h"
#include "engine/container/payload.h"

namespace hk::engine {
namespace {

class Validator {
 public:
  Validator(const ModelReader& reader, const ValidateOptions& options)
      : reader_(reader), hk_(dynamic_cast<const HkReader*>(&reader)), options_(options) {}

  std::vector<Finding> run() {
    check_remarks();
    if (hk_ == nullptr) {
      check_metadata(reader_.metadata(), reader_.path());
    } else {
      for (std::uint32_t i = 0; i < hk_->files().size(); ++i) {
        const auto& file = hk_->files()[i];
        check_metadata(file.metadata, file.path());
        check_extents(file, i);
        check_appendix(file);
      }
      for (const auto& problem : hk_->index_problems()) wrong(problem);
    }
    check_tensors();
    return std::move(findings_);
  }

 private:
  void wrong(std::string text) { findings_.push_back({true, std::move(text)}); }
  void note(std::string text) { findings_.push_back({false, std::move(text)}); }

  void check_remarks() {
    for (const auto& remark : reader_.remarks()) {
      const bool fault =
          hk_ != nullptr && std::find(hk_->faults().begin(), hk_->faults().end(), remark) != hk_->faults().end();
      findings_.push_back({fault, remark});
    }
  }

  void check_metadata(const Metadata& metadata, const std::string& file) {
    std::string family;
    if (const auto* entry = metadata.find("general.architecture");
        entry != nullptr && value_problem(*entry).empty() && entry->type == ValueType::kString)
      family = std::string(*metadata.string("general.architecture")) + ".";
    for (const auto& entry : metadata.entries()) {
      const auto name = [&] { return fmt::format("{}: metadata key {:?}", file, entry.key); };
      if (!is_valid_utf8(entry.key)) wrong(name() + " is no valid UTF-8");
      if (const auto problem = value_problem(entry); !problem.empty())
        wrong(fmt::format("{} holds {}", name(), problem));
      if (entry.type != ValueType::kBytes) continue;
      // Where arrays are expected bytes must be one. Elsewhere they are opaque, and looking like one may be chance.
      const bool array_expected =
          entry.key.starts_with("tokenizer.") || (family.size() > 1 && entry.key.starts_with(family));
      Blob blob;
      if (!array_expected && !has_blob_header(entry.value)) continue;
      if (const auto problem = read_blob(entry.value, blob); !problem.empty())
        findings_.push_back({array_expected, fmt::format("{} holds a broken array: {}", name(), problem)});
    }
  }

  struct Extent {
    std::uint64_t begin, end;
    std::string_view stream;
    const TensorView* tensor;  ///< null: a section of the file

    std::string name() const {
      return tensor == nullptr ? std::string(stream) : fmt::format("the {} of tensor {:?}", stream, tensor->name);
    }
  };

  void check_extents(const HkFile& file, std::uint32_t shard) {
    std::vector<Extent> extents;
    const auto add = [&](std::uint64_t begin, std::uint64_t size, std::string_view stream, const TensorView* tensor) {
      if (size != 0) extents.push_back({begin, begin + size, stream, tensor});
    };
    const auto& header = file.header;
    const auto* start = file.bytes().data();
    std::uint64_t first_payload = file.bytes().size();
    for (const auto& tensor : reader_.tensors()) {
      if (tensor.shard != shard || !tensor.shared_with.empty()) continue;
      const auto add_stream = [&](std::span<const std::byte> stream, std::string_view name) {
        if (stream.empty()) return;
        const auto begin = static_cast<std::uint64_t>(stream.data() - start);
        first_payload = std::min(first_payload, begin);
        add(begin, stream.size(), name, &tensor);
      };
      add_stream(tensor.data, "data");
      add_stream(tensor.scales, "scales");
      add_stream(tensor.residual, "residual");
    }
    if (!extents.empty() && header.tensor_data_offset > first_payload)
      wrong(fmt::format("{}: the header says that payloads begin at {}; the first one lies at {} of {} bytes",
                        file.path(), header.tensor_data_offset, first_payload, file.bytes().size()));
    add(header.metadata_offset, header.metadata_size, "the metadata", nullptr);
    add(header.tensor_toc_offset, header.tensor_toc_size, "the table of contents", nullptr);
    if (header.appendix_offset >= kHkHeaderBytes && header.appendix_offset < file.bytes().size())
      add(header.appendix_offset, file.bytes().size() - header.appendix_offset, "the appendix", nullptr);
    for (const auto& extent : extents)
      if (extent.tensor == nullptr && extent.begin < kHkHeaderBytes)
        wrong(fmt::format("{}: {} at {} overlaps the file header", file.path(), extent.name(), extent.begin));
    report_overlaps(extents, file.path());
  }

  void report_overlaps(std::vector<Extent>& extents, const std::string& file) {
    std::sort(extents.begin(), extents.end(),
              [](const Extent& a, const Extent& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
    const Extent* furthest = nullptr;
    for (const auto& extent : extents) {
      if (furthest != nullptr && extent.begin < furthest->end) {
        // Tied weights may also be told by two plain entries for the very same bytes.
        const bool same = extent.begin == furthest->begin && extent.end == furthest->end && extent.tensor != nullptr &&
                          furthest->tensor != nullptr;
        if (!same)
          wrong(fmt::format("{}: {} ({} to {}) and {} ({} to {}) overlap", file, furthest->name(), furthest->begin,
                            furthest->end, extent.name(), extent.begin, extent.end));
      }
      if (furthest == nullptr || extent.end > furthest->end) furthest = &extent;
    }
  }

  void check_appendix(const HkFile& file) {
    const auto& header = file.header;
    if (header.appendix_offset < kHkHeaderBytes || header.appendix_offset > file.bytes().size())
      return;  // said at open
    const auto appendix = read_appendix(file.bytes(), header.appendix_offset);
    for (auto& problem : appendix_problems(appendix)) wrong(file.path() + ": " + std::move(problem));
  }

  void check_tensors() {
    std::uint64_t total = 0, done = 0;
    for (const auto& tensor : reader_.tensors()) total += tensor.data.size() + tensor.scales.size();
    for (const auto& tensor : reader_.tensors()) {
      if (!tensor.problem.empty()) {
        // A layout that nobody has published is no fault of the file; everything else that stops a tensor is.
        const auto verdict = check_sizes(tensor, {tensor.data.size(), tensor.scales.size(), tensor.residual.size()});
        const bool valid = verdict.kind == PayloadVerdict::Kind::kUnpublished && tensor.problem.ends_with(verdict.why);
        findings_.push_back({!valid, tensor.problem});
      } else if (options_.payloads && tensor.shared_with.empty()) {
        const auto before = done;
        check_values(reader_, tensor, findings_, [&](std::uint64_t bytes) {
          if (options_.progress) options_.progress(before + bytes, total);
        });
      }
      done += tensor.data.size() + tensor.scales.size();
      if (options_.progress) options_.progress(done, total);
    }
  }

  const ModelReader& reader_;
  const HkReader* hk_;
  const ValidateOptions& options_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> validate(const ModelReader& reader, const ValidateOptions& options) {
  return Validator(reader, options).run();
}

}  // namespace hk::engine
