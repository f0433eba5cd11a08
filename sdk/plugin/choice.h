// choice.h: which devices of a driver a plugin lists, by a list that the user sets.
#ifndef KEEL_PLUGIN_CHOICE_H
#define KEEL_PLUGIN_CHOICE_H
#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace keel::plugin {

// The value of an environment variable, "" in a set-user-ID program; and whether it is set and not 0.
inline std::string variable(const char* name) {
  const char* value = secure_getenv(name);
  return value ? value : "";
}
inline bool is_set(const char* name) {
  const std::string value = variable(name);
  return !value.empty() && value != "0";
}

struct Identity {
  std::string name, uuid;  // uuid: 32 hexadecimal digits
};

inline std::string hexadecimal(const uint8_t* bytes, size_t n) {
  std::string text;
  for (size_t i = 0; i < n; i++)
    for (int digit : {bytes[i] >> 4, bytes[i] & 15}) text += "0123456789abcdef"[digit];
  return text;
}

namespace detail {

inline std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}
inline bool is_chosen(const Identity& device, size_t index, std::string wanted) {
  const bool number = wanted.find_first_not_of("0123456789") == std::string::npos;
  if (number && wanted.size() < 4) return wanted == std::to_string(index);
  wanted = lower(wanted);
  if (lower(device.name).find(wanted) != std::string::npos) return true;
  wanted.erase(std::remove(wanted.begin(), wanted.end(), '-'), wanted.end());
  return wanted.size() >= 4 && device.uuid.compare(0, wanted.size(), wanted) == 0;
}

}  // namespace detail

// The devices that the environment variable selects, by number, in its order: indices, UUIDs (4 digits or
// more) or parts of names, separated by commas. "": all. None: why_not gets the reason.
inline std::vector<size_t> choose_devices(const std::string& list, const char* name_of_variable,
                                          const std::vector<Identity>& devices, std::string* why_not) {
  std::vector<size_t> chosen;
  if (list.empty()) {
    for (size_t i = 0; i < devices.size(); i++) chosen.push_back(i);
    return chosen;
  }
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    for (size_t i = 0; i < devices.size(); i++)
      if (end > begin && detail::is_chosen(devices[i], i, list.substr(begin, end - begin)) &&
          std::find(chosen.begin(), chosen.end(), i) == chosen.end())
        chosen.push_back(i);
    begin = end + 1;
  }
  if (!chosen.empty()) return chosen;
  std::string known;
  for (size_t i = 0; i < devices.size(); i++)
    known += (i ? "; " : "") + std::to_string(i) + ": " + devices[i].name + ", UUID " + devices[i].uuid;
  *why_not = std::string(name_of_variable) + "='" + list +
             "' selects no device; expected indices, UUIDs or parts of names of: " + known;
  return chosen;
}

}  // namespace keel::plugin
#endif
