// plugin_door_test.cc: which plugin files are accepted and which refused, with which message; no code of a
// refused file runs. Uses libkeel through its C functions only.
#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "abi/keel.h"
#include "abi/keel_plugin.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Every object of a report with the key "path".
void CollectAttempts(const json& report, std::vector<json>* out) {
  if (report.is_object() && report.contains("path")) out->push_back(report);
  if (report.is_structured())
    for (const json& child : report) CollectAttempts(child, out);
}

class PluginDoor : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/keel-door-XXXXXX";
    folder_ = fs::canonical(mkdtemp(name));
    trace_ = folder_ / "trace";
    setenv("KEEL_TEST_TRACE", trace_.c_str(), 1);
    unsetenv("KEEL_PLUGIN_PATH");
    ASSERT_EQ(keel_context_new(nullptr, 0, &context_, nullptr), KEEL_OK);
  }
  void TearDown() override {
    keel_context_free(context_);
    fs::remove_all(folder_);
  }

  // A copy of a variant: its own inode, so that the dynamic linker treats it as a new library.
  std::string Copy(const std::string& variant, const std::string& as) {
    fs::path to = folder_ / as;
    fs::copy_file(fs::path(KEEL_TEST_DOOR) / ("keel-" + variant + ".so"), to);
    return to;
  }
  // "" if the file was accepted, else the message and the hint.
  std::string Load(const std::string& path, keel_rc* code = nullptr) {
    keel_error* error = nullptr;
    keel_rc rc = keel_plugin_load(context_, path.c_str(), &error);
    if (code) *code = rc;
    if (rc == KEEL_OK) return "";
    std::string text = std::string(keel_error_text(error, KEEL_ERROR_MESSAGE)) + "\n" +
                       keel_error_text(error, KEEL_ERROR_HINT);
    keel_error_free(error);
    return text;
  }
  // The last entry of report "plugins" for a path, as JSON text; "" if there is none.
  std::string Reported(const std::string& path) {
    keel_text* text = nullptr;
    if (keel_context_report(context_, "plugins", &text, nullptr) != KEEL_OK) return "no report";
    std::vector<json> attempts;
    CollectAttempts(json::parse(keel_text_data(text, nullptr)), &attempts);
    keel_text_free(text);
    std::string found;
    for (const json& attempt : attempts)
      if (attempt["path"] == path) found = attempt.dump();
    return found;
  }
  std::string Trace() {
    std::ifstream file(trace_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Loads a variant that must be refused; the error and the report contain each of `words`.
  void ExpectRefused(const std::string& variant, const std::vector<std::string>& words) {
    std::string path = Copy(variant, "keel-" + variant + ".so"), text = Load(path);
    for (const std::string& word : words) {
      EXPECT_NE(text.find(word), std::string::npos) << "no '" << word << "' in: " << text;
      EXPECT_NE(Reported(path).find(word), std::string::npos) << "no '" << word << "' in: " << Reported(path);
    }
    EXPECT_EQ(Trace(), "") << "a refused plugin ran code";
  }

  fs::path folder_, trace_;
  keel_context* context_ = nullptr;
};

TEST_F(PluginDoor, AMatchingPluginIsTakenAndItsConstructorIsSeen) {
  std::string path = Copy("good", "keel-good.so");
  EXPECT_EQ(Load(path), "");
  EXPECT_NE(Reported(path), "");
  EXPECT_EQ(Trace(), "good 0\n") << "the trace that the tests below rely on does not work";
}

TEST_F(PluginDoor, AnOlderDraftIsRefusedWithBothNumbersAndTheRemedy) {
  ExpectRefused("older-draft", {"draft 0", "draft " + std::to_string(KEEL_ABI_DRAFT), "rebuild the plugin"});
}
TEST_F(PluginDoor, ANewerDraftIsRefusedWithBothNumbersAndTheRemedy) {
  ExpectRefused("newer-draft", {"draft 77", "draft " + std::to_string(KEEL_ABI_DRAFT),
                                "update libkeel, or rebuild the plugin"});
}
TEST_F(PluginDoor, ANewerMinorIsRefusedWithBothNumbersAndTheRemedy) {
  ExpectRefused("newer-minor",
                {"minor version 5", "has " + std::to_string(KEEL_ABI_MINOR), "update libkeel"});
}
TEST_F(PluginDoor, AnotherMajorIsRefusedWithBothNumbersAndTheRemedy) {
  ExpectRefused("newer-major",
                {"major version 3", "has " + std::to_string(KEEL_ABI_MAJOR), "rebuild the plugin"});
}
TEST_F(PluginDoor, AnotherBuildKindIsRefused) { ExpectRefused("other-build", {"build"}); }
TEST_F(PluginDoor, ALibraryWithoutTheNoteIsRefused) { ExpectRefused("no-note", {"not a plugin", "note"}); }
TEST_F(PluginDoor, AMissingLibraryIsNamed) { ExpectRefused("missing-library", {"libkeel_absent.so"}); }

TEST_F(PluginDoor, AFileThatIsNoLibraryIsRefused) {
  std::string path = folder_ / "keel-text.so";
  std::ofstream(path) << "this is not a library\n";
  EXPECT_NE(Load(path).find("not a plugin"), std::string::npos) << Load(path);
  std::string empty = folder_ / "keel-empty.so";
  std::ofstream{empty};
  EXPECT_NE(Load(empty).find("not a plugin"), std::string::npos) << Load(empty);
}

// The dynamic linker would search its path for such a name, and could load a different file from the one
// checked.
TEST_F(PluginDoor, ANameWithoutASlashIsTheFileInTheWorkingFolder) {
  Copy("good", "keel-here.so");
  fs::path before = fs::current_path();
  fs::current_path(folder_);
  EXPECT_EQ(Load("keel-here.so"), "");
  fs::current_path(before);
  EXPECT_EQ(Trace(), "good 0\n");
}

TEST_F(PluginDoor, AnotherMachineAndAnotherKindOfFileAreRefusedByName) {
  struct Patch {
    size_t at;
    uint16_t value;
    const char *machine, *ours;
  };
  const Patch patches[] = {{offsetof(Elf64_Ehdr, e_machine), EM_AARCH64, "AArch64", "this libkeel is 64-bit"},
                           {offsetof(Elf64_Ehdr, e_machine), EM_386, "i386", "this libkeel is 64-bit"},
                           {EI_CLASS, ELFCLASS32 | ELFDATA2LSB << 8, "32-bit", "this libkeel is 64-bit"},
                           {EI_CLASS, ELFCLASS64 | ELFDATA2MSB << 8, "big-endian", "this libkeel is 64-bit"},
                           {offsetof(Elf64_Ehdr, e_type), ET_EXEC, "type 2", "type 3"}};
  for (const Patch& p : patches) {
    std::string path = Copy("good", "keel-" + std::string(p.machine) + ".so");
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(p.at));
    file.write(reinterpret_cast<const char*>(&p.value), sizeof p.value);
    file.close();
    std::string said = Load(path);
    EXPECT_NE(said.find(p.machine), std::string::npos) << said;
    EXPECT_NE(said.find(p.ours), std::string::npos) << said;
  }
  EXPECT_EQ(Trace(), "");
}

TEST_F(PluginDoor, AFileOfNothingButHeadersIsRefusedAtOnce) {
  std::string path = Copy("good", "keel-many.so");
  Elf64_Ehdr elf;
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.read(reinterpret_cast<char*>(&elf), sizeof elf);
  elf.e_phoff = sizeof elf;
  elf.e_phnum = 65534;
  elf.e_shnum = 0;
  std::vector<Elf64_Phdr> parts(elf.e_phnum);
  for (Elf64_Phdr& part : parts) part.p_type = PT_NOTE, part.p_offset = sizeof elf, part.p_filesz = 1 << 20;
  file.seekp(0);
  file.write(reinterpret_cast<const char*>(&elf), sizeof elf);
  file.write(reinterpret_cast<const char*>(parts.data()),
             static_cast<std::streamsize>(parts.size() * sizeof parts[0]));
  file.close();
  clock_t begin = clock();
  EXPECT_NE(Load(path).find("65534 program headers"), std::string::npos) << Load(path);
  EXPECT_LT(clock() - begin, CLOCKS_PER_SEC / 2);
}

TEST_F(PluginDoor, AMissingFileAndAFolderAreRefused) {
  keel_rc code = KEEL_OK;
  EXPECT_NE(Load(folder_ / "keel-none.so", &code).find("keel-none.so"), std::string::npos);
  EXPECT_EQ(code, KEEL_NOT_FOUND);
  fs::create_directory(folder_ / "keel-folder.so");
  EXPECT_NE(Load(folder_ / "keel-folder.so"), "");
}

TEST_F(PluginDoor, AnUnreadableFileIsRefused) {
  std::string path = Copy("good", "keel-secret.so");
  fs::permissions(path, fs::perms::none);
  fs::permissions(folder_, fs::perms::all);
  uid_t user = geteuid();
  if (user == 0) {  // root may read every file
    ASSERT_EQ(seteuid(65534), 0);
  }
  std::string text = Load(path);
  ASSERT_EQ(seteuid(user), 0);
  EXPECT_NE(text.find("cannot be read"), std::string::npos) << text;
  EXPECT_EQ(Trace(), "");
}

TEST_F(PluginDoor, ASymlinkToATakenPluginIsADuplicate) {
  std::string path = Copy("good", "keel-a.so"), link = folder_ / "keel-b.so";
  fs::create_symlink(path, link);
  EXPECT_EQ(Load(path), "");
  Load(link);
  EXPECT_NE(Reported(link).find("same file"), std::string::npos) << Reported(link);
  EXPECT_EQ(Trace(), "good 0\n");
}

TEST_F(PluginDoor, AScanTakesTheGoodAndReportsEachRefusal) {
  Copy("good", "keel-good.so");
  Copy("newer-draft", "keel-newer-draft.so");
  Copy("good", "libkeel-good.so");  // another prefix: not loaded
  keel_kv option = {"plugins", folder_.c_str()};
  keel_context* context = nullptr;
  ASSERT_EQ(keel_context_new(&option, 1, &context, nullptr), KEEL_OK);
  std::swap(context, context_);
  EXPECT_EQ(keel_plugin_load(context_, nullptr, nullptr), KEEL_OK);
  EXPECT_NE(Reported(folder_ / "keel-good.so"), "");
  EXPECT_NE(Reported(folder_ / "keel-newer-draft.so").find("draft 77"), std::string::npos);
  EXPECT_NE(Reported(folder_ / "libkeel-good.so").find("does not begin with"), std::string::npos);
  EXPECT_EQ(Trace(), "good 0\n");
  keel_context_free(context);
}

TEST_F(PluginDoor, RelativeFoldersInKeelPluginPathAreNotSearched) {
  Copy("good", "keel-good.so");
  fs::path before = fs::current_path();
  fs::current_path(folder_);
  setenv("KEEL_PLUGIN_PATH", ".", 1);
  EXPECT_EQ(keel_plugin_load(context_, nullptr, nullptr), KEEL_OK);
  fs::current_path(before);
  unsetenv("KEEL_PLUGIN_PATH");
  EXPECT_NE(Reported(".").find("absolute"), std::string::npos) << Reported(".");
  EXPECT_EQ(Trace(), "");
}

// The dynamic linker maps by the file's headers, so a truncated file must be refused before.
TEST_F(PluginDoor, ATruncatedPluginIsRefusedAtEveryLength) {
  std::ifstream file(fs::path(KEEL_TEST_DOOR) / "keel-good.so", std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const auto* elf = reinterpret_cast<const Elf64_Ehdr*>(bytes.data());
  size_t needed = 0;
  for (int i = 0; i < elf->e_phnum; i++) {
    const auto* part = reinterpret_cast<const Elf64_Phdr*>(bytes.data() + elf->e_phoff) + i;
    if (part->p_type == PT_LOAD) needed = std::max<size_t>(needed, part->p_offset + part->p_filesz);
  }
  ASSERT_GT(needed, 512u);
  for (size_t length = 1; length < needed; length += length < 1024 ? 13 : 509) {
    std::string path = folder_ / ("keel-cut-" + std::to_string(length) + ".so");
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(length));
    ASSERT_NE(Load(path), "") << "taken with " << length << " of " << bytes.size() << " bytes";
  }
  EXPECT_EQ(Trace(), "");
}

}  // namespace
