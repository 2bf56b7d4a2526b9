// Memory figures of this process and of made-up machines; aligned buffers.
#include "engine/runtime/memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "base/error.h"
#include "engine/runtime/aligned_buffer.h"
#include "fake_machine.h"

namespace hk::engine {
namespace {

using test::FakeMachine;
constexpr std::uint64_t kMiB = 1 << 20;

TEST(ProcessMemory, PrivateGrowsWithTheHeapAndMappedWithAFile) {
  const auto before = process_memory();
  EXPECT_GT(before.private_bytes, 0u);
  std::vector<char> heap(64 * kMiB, 1);
  const auto with_heap = process_memory();
  EXPECT_GE(with_heap.private_bytes, before.private_bytes + 60 * kMiB);
  EXPECT_LT(with_heap.mapped_bytes, before.mapped_bytes + 4 * kMiB);

  test::TemporaryFolder folder;
  const auto path = folder.write("file", std::as_bytes(std::span(heap)).first(32 * kMiB));
  const int file = open(path.c_str(), O_RDONLY);
  ASSERT_GE(file, 0);
  void* map = mmap(nullptr, 32 * kMiB, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  ASSERT_NE(map, MAP_FAILED);
  volatile unsigned sum = 0;
  for (std::size_t i = 0; i < 32 * kMiB; i += 4096) sum = sum + static_cast<unsigned char*>(map)[i];
  const auto with_map = process_memory();
  EXPECT_GE(with_map.mapped_bytes, with_heap.mapped_bytes + 28 * kMiB);
  EXPECT_LT(with_map.private_bytes, with_heap.private_bytes + 4 * kMiB);
  munmap(map, 32 * kMiB);
}

TEST(ProcessMemory, StatusAndStatm) {
  FakeMachine machine;
  machine.file("proc/self/statm", "1000 300 100 1 0 50 0");
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  EXPECT_EQ(process_memory(machine.root()).private_bytes, 200 * page);
  EXPECT_EQ(process_memory(machine.root()).mapped_bytes, 100 * page);
  machine.file("proc/self/status", "Name:\thk\nRssAnon:\t    2048 kB\nRssFile:\t    1024 kB\nRssShmem:\t       4 kB");
  EXPECT_EQ(process_memory(machine.root()).private_bytes, 2 * kMiB);
  EXPECT_EQ(process_memory(machine.root()).mapped_bytes, kMiB + 4096);
}

TEST(MachineMemory, NothingToRead) {
  FakeMachine machine;
  const auto memory = machine_memory(machine.root());
  EXPECT_FALSE(memory.total || memory.available || memory.cgroup_limit || memory.usable());
}

TEST(MachineMemory, Version2SmallestOfTheParents) {
  FakeMachine machine;
  machine.file("proc/meminfo", "MemTotal:  16777216 kB\nMemFree: 1 kB\nMemAvailable:  8388608 kB");
  machine.cgroup2("/a/b")
      .file("sys/fs/cgroup/a/b/memory.max", "max")
      .file("sys/fs/cgroup/a/memory.max", "1073741824")
      .file("sys/fs/cgroup/a/memory.current", "73741824");
  const auto memory = machine_memory(machine.root());
  EXPECT_EQ(memory.total, 16384 * kMiB);
  EXPECT_EQ(memory.available, 8192 * kMiB);
  EXPECT_EQ(memory.cgroup_limit, 1024 * kMiB);
  EXPECT_EQ(memory.usable(), 1000000000u);
}

TEST(MachineMemory, Version1) {
  FakeMachine machine;
  machine.file("proc/self/cgroup", "7:memory:/job")
      .file("proc/self/mountinfo", "33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory")
      .file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_FALSE(machine_memory(machine.root()).cgroup_limit);
  machine.file("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "536870912");
  EXPECT_EQ(machine_memory(machine.root()).cgroup_limit, 512 * kMiB);
}

TEST(MachineMemory, LimitsOfTheProcess) {
  FakeMachine machine;
  machine.file("proc/self/status", "VmSize:\t  102400 kB\nVmData:\t    2048 kB")
      .file("proc/meminfo", "MemTotal:  16777216 kB\nMemAvailable:  8388608 kB")
      .file("proc/self/limits",
            "Limit                     Soft Limit           Hard Limit           Units\n"
            "Max data size             unlimited            unlimited            bytes\n"
            "Max address space         1073741824           unlimited            bytes");
  EXPECT_EQ(machine_memory(machine.root()).process_left, 924 * kMiB);
  EXPECT_EQ(machine_memory(machine.root()).usable(), 924 * kMiB);
  machine.file("proc/self/limits", "Max data size             104857600            unlimited            bytes");
  EXPECT_EQ(machine_memory(machine.root()).usable(), 98 * kMiB);
  machine.file("proc/self/limits", "Max data size             1000            unlimited            bytes");
  EXPECT_EQ(machine_memory(machine.root()).usable(), 0U);
  machine.file("proc/self/limits", "Max data size             unlimited            unlimited            bytes");
  EXPECT_EQ(machine_memory(machine.root()).usable(), 8192 * kMiB);
}

TEST(MachineMemory, OfThisMachine) {
  const auto memory = machine_memory();
  ASSERT_TRUE(memory.total && memory.available);
  EXPECT_GT(*memory.total, 16 * kMiB);
  EXPECT_LE(*memory.available, *memory.total);
}

TEST(AlignedBuffer, AlignmentZeroAndMove) {
  for (const std::size_t count : {1, 3, 64, 1001}) {
    AlignedBuffer<float> buffer(count, "a test", true);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % kCacheLine, 0u);
    for (const float value : buffer) ASSERT_EQ(value, 0.0f);
    buffer[count - 1] = 2;
    AlignedBuffer<float> moved(std::move(buffer));
    EXPECT_EQ(moved.size(), count);
    EXPECT_EQ(moved[count - 1], 2.0f);
  }
  AlignedBuffer<int> none(0);
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.data(), nullptr);
}

TEST(AlignedBuffer, RefusalSaysWhatForAndHowMuch) {
  for (const std::size_t count :
       {std::numeric_limits<std::size_t>::max(), std::numeric_limits<std::size_t>::max() / 8}) {
    try {
      AlignedBuffer<double> buffer(count, "the KV cache");
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kResource);
      EXPECT_NE(std::string(error.what()).find("the KV cache"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace hk::engine
