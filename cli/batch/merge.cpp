// An index of all answers, then one pass in the order of the input (see merge.h).
#include "cli/batch/merge.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>

#include "base/error.h"
#include "cli/batch/answer_file.h"
#include "cli/batch/id_table.h"
#include "cli/batch/line_stream.h"
#include "cli/batch/request_reader.h"
#include "cli/batch/result_line.h"
#include "cli/output_check.h"
#include "cli/streams.h"
#include "engine/container/atomic_file.h"

namespace hk::cli {
namespace {

constexpr std::size_t kLongestAnswer = std::size_t{1} << 30;
constexpr std::size_t kNamed = 10;  // missing answers that are named one by one

struct Place {
  std::uint32_t part;
  bool used;
  std::uint64_t line, begin, length;
};

class PartFile {
 public:
  explicit PartFile(const std::string& path) : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) throw Error(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  }
  ~PartFile() { ::close(descriptor_); }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  void read(std::uint64_t begin, std::uint64_t length, std::string& out) const {
    out.resize(length);
    for (std::size_t done = 0; done < length;) {
      const auto got = ::pread(descriptor_, out.data() + done, length - done, static_cast<off_t>(begin + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0)
        throw Error(
            fmt::format("{}: cannot be read: {}", path_, got == 0 ? "it became shorter" : std::strerror(errno)));
      done += static_cast<std::size_t>(got);
    }
  }

 private:
  std::string path_;
  int descriptor_;
};

class Merge {
 public:
  explicit Merge(const MergeOptions& options) : options_(options) {}

  void run() {
    namespace fs = std::filesystem;
    std::error_code ignored;
    refuse_inputs(options_.out, options_.parts);
    refuse_inputs(options_.out, std::vector{options_.input});
    if (fs::exists(options_.out, ignored) && !options_.force)
      throw Error(fmt::format("{}: exists; --force replaces it", options_.out));
    for (std::size_t i = 0; i < options_.parts.size(); ++i) index(static_cast<std::uint32_t>(i));
    for (const auto& part : options_.parts) files_.push_back(std::make_unique<PartFile>(part));
    out_.emplace(options_.out);
    if (options_.input.empty()) {
      for (const Place& place : places_) copy(place);
    } else {
      follow_input();
    }
    out_->sync();
    out_->commit();
    write_note(fmt::format("{}: {} answers of {} parts, {} of them errors{}", options_.out, written_,
                           options_.parts.size(), failed_,
                           options_.input.empty() ? "; whether all are there is not known without --input" : ""));
  }

 private:
  void index(std::uint32_t part) {
    const std::string& path = options_.parts[part];
    LineStream lines(path, kLongestAnswer);
    std::string line;
    for (auto event = lines.next(line); event != LineStream::Event::kEnd; event = lines.next(line)) {
      if (event == LineStream::Event::kTail)
        throw Error(
            fmt::format("{}: the last line is cut; this part is not finished (--resume goes on with it)", path));
      const auto result = event == LineStream::Event::kLine ? read_result_line(line) : std::nullopt;
      if (!result) throw Error(fmt::format("{}: line {} is no answer of a batch", path, lines.number()));
      std::uint64_t& known = table_[result->key];
      if (known != 0) {
        const Place& first = places_[known - 1];
        throw Error(fmt::format("{}: line {} answers what {} answers in line {}", path, lines.number(),
                                options_.parts[first.part], first.line));
      }
      places_.push_back({part, false, lines.number(), lines.line_begin(), lines.offset() - lines.line_begin()});
      known = places_.size();
      if (result->failed) ++failed_;
    }
  }

  void follow_input() {
    RequestReader reader(options_.input, options_.text, {});
    InputLine line;
    std::uint64_t missing = 0;
    std::string named;
    while (reader.next(line) == RequestReader::Event::kLine) {
      const std::uint64_t known = table_.find(line.key());
      if (known == 0) {
        if (missing++ < kNamed) named += fmt::format("{}{}", named.empty() ? "" : ", ", line.id);
        continue;
      }
      places_[known - 1].used = true;
      copy(places_[known - 1]);
    }
    if (missing > 0) {
      const auto sentence = fmt::format("{} of the requests in {} have no answer: {}{}", missing, options_.input, named,
                                        missing > kNamed ? ", ..." : "");
      if (!options_.partial) throw Error(sentence);
      write_note("hk-run: " + sentence);
    }
    for (const Place& place : places_)
      if (!place.used)
        throw Error(fmt::format("{}: line {} answers a request that is not in {}", options_.parts[place.part],
                                place.line, options_.input));
  }

  void copy(const Place& place) {
    files_[place.part]->read(place.begin, place.length, buffer_);
    out_->write(offset_, std::as_bytes(std::span(buffer_)));
    offset_ += buffer_.size();
    ++written_;
  }

  const MergeOptions& options_;
  IdTable table_;  // key to index into places_, plus 1
  std::vector<Place> places_;
  std::vector<std::unique_ptr<PartFile>> files_;
  std::optional<engine::AtomicFile> out_;
  std::string buffer_;
  std::uint64_t offset_ = 0, written_ = 0, failed_ = 0;
};

}  // namespace

void merge_answers(const MergeOptions& options) { Merge(options).run(); }

}  // namespace hk::cli
