// host_speed.cc: demo.sh compiles it to learn how fast this machine compiles; nothing runs it.
#include <algorithm>
#include <functional>
#include <map>
#include <regex>
#include <string>
#include <vector>
int main() {
  std::map<std::string, std::vector<std::function<int(int)>>> all;
  std::regex words("([a-z]+)=([0-9]+)");
  std::smatch found;
  std::string text = "a=1";
  if (std::regex_match(text, found, words)) all[found[1]].push_back([](int x) { return x + 1; });
  return static_cast<int>(all.size());
}
