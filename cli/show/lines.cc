// lines.cc: see lines.h. Each statement gets a key, in which an unnamed value is replaced by the op that
// computes it; the keys of both sides are compared as multisets, graph by graph.
#include "cli/show/lines.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <sstream>
#include <vector>

namespace cli {
namespace {

struct Statement {
  std::string line, key, name;  // name: of its result; "" if unnamed
};
struct Block {  // a graph, or the lines outside of graphs
  std::string name;
  std::vector<Statement> statements;
};

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

bool is_number_name(const std::string& word) {  // v12, v12_1
  return word.size() > 1 && word[0] == 'v' && std::isdigit(static_cast<unsigned char>(word[1])) &&
         word.find_first_not_of("0123456789_", 1) == std::string::npos;
}

// The op of each unnamed value, by the indentation of its body.
class Keys {
 public:
  Statement statement(const std::string& line) {
    const size_t indent = line.find_first_not_of(' ');
    known_.erase(known_.upper_bound(indent), known_.end());
    const size_t equals = line.find(" = ");
    std::string outs = equals == std::string::npos ? "" : line.substr(0, equals);
    std::string right = spelled(line.substr(outs.size()));
    Statement made{line, result_key(outs) + right, ""};
    for (const std::string& word : words(outs))
      if (is_number_name(word))
        known_[indent][word] = "#" + right.substr(3, right.find('(') - 3);  // " = add(..." by its op
      else if (made.name.empty())
        made.name = word;
    return made;
  }

 private:
  static std::vector<std::string> words(const std::string& text) {
    std::vector<std::string> out;
    for (size_t at = 0; at < text.size(); at++) {
      size_t end = at;
      while (end < text.size() && in_word(text[end])) end++;
      if (end > at) out.push_back(text.substr(at, end - at));
      at = end;
    }
    return out;
  }
  static std::string result_key(const std::string& outs) {
    std::string out;
    for (const std::string& word : words(outs)) out += (is_number_name(word) ? "_" : word) + ",";
    return out;
  }
  std::string spelled(const std::string& text) const {
    std::string out;
    bool quoted = false;
    for (size_t at = 0; at < text.size();) {
      if (text[at] == '"') quoted = !quoted;
      size_t end = at;
      while (!quoted && end < text.size() && in_word(text[end])) end++;
      if (end == at) {
        out += text[at++];
        continue;
      }
      std::string word = text.substr(at, end - at);
      out += is_number_name(word) ? meaning(word) : word;
      at = end;
    }
    return out;
  }
  std::string meaning(const std::string& word) const {
    for (auto body = known_.rbegin(); body != known_.rend(); ++body)
      if (auto found = body->second.find(word); found != body->second.end()) return found->second;
    return word;
  }

  std::map<size_t, std::map<std::string, std::string>> known_;
};

std::vector<Block> blocks_of(const std::string& text) {
  std::vector<Block> blocks{{"", {}}};
  std::istringstream in(text);
  Keys keys;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("fn @")) {
      blocks.push_back({line.substr(3, line.find('(') - 3), {}});
      keys = {};
    }
    if (!line.empty()) blocks.back().statements.push_back(keys.statement(line));
    if (line == "}") blocks.push_back({"", {}});
  }
  std::vector<Block> graphs{blocks[0]};  // the lines outside of graphs are one block
  for (size_t i = 1; i < blocks.size(); i++)
    if (blocks[i].name.empty())
      std::ranges::move(blocks[i].statements, std::back_inserter(graphs[0].statements));
    else
      graphs.push_back(std::move(blocks[i]));
  return graphs;
}

// Statements whose key occurs less often on the other side.
std::vector<Statement> only_in(const Block& block, const Block* other) {
  std::map<std::string, int> there;
  if (other)
    for (const Statement& s : other->statements) there[s.key]++;
  std::vector<Statement> out;
  for (const Statement& s : block.statements)
    if (there[s.key]-- <= 0) out.push_back(s);
  return out;
}

// Removes statements that moved from one graph into a new one (a fused region). Returns their number.
size_t take_moved(std::vector<Statement>& come, std::vector<std::vector<Statement>>& gone) {
  std::map<std::string, std::pair<size_t, size_t>> where;  // removed statements, by key
  for (size_t b = 0; b < gone.size(); b++)
    for (size_t i = 0; i < gone[b].size(); i++)
      if (!gone[b][i].name.empty()) where[gone[b][i].key] = {b, i};
  return std::erase_if(come, [&](const Statement& s) {
    auto found = s.name.empty() ? where.end() : where.find(s.key);
    if (found == where.end()) return false;
    gone[found->second.first][found->second.second].line.clear();  // not listed there either
    where.erase(found);
    return true;
  });
}

void write(const std::string& title, const std::vector<Statement>& gone, const std::vector<Statement>& come,
           std::string& out) {
  if (!title.empty() && !(gone.empty() && come.empty())) out += " " + title + "\n";
  size_t printed = 0;
  for (const Statement& s : come) {
    for (size_t i = printed; i < gone.size() && !s.name.empty(); i++)
      if (gone[i].name == s.name)
        for (; printed <= i; printed++) out += "-" + gone[printed].line + "\n";
    out += "+" + s.line + "\n";
  }
  for (; printed < gone.size(); printed++) out += "-" + gone[printed].line + "\n";
}

const Block* find(const std::vector<Block>& blocks, const std::string& name) {
  auto found = std::ranges::find(blocks, name, &Block::name);
  return found == blocks.end() ? nullptr : &*found;
}

}  // namespace

std::string changed_lines(const std::string& before, const std::string& after) {
  const std::vector<Block> old = blocks_of(before), now = blocks_of(after);
  std::vector<std::vector<Statement>> gone, come;
  for (const Block& b : old) gone.push_back(only_in(b, find(now, b.name)));
  for (const Block& b : now) come.push_back(only_in(b, find(old, b.name)));
  std::vector<std::string> titles;
  for (size_t b = 0; b < now.size(); b++) {
    titles.push_back(now[b].name);
    if (size_t moved = find(old, now[b].name) ? 0 : take_moved(come[b], gone))
      titles.back() += fmt::format(" ({} nodes moved here)", moved);
  }
  for (auto& list : gone) std::erase_if(list, [](const Statement& s) { return s.line.empty(); });
  std::string out;
  for (size_t o = 0; o < old.size(); o++)
    if (!find(now, old[o].name)) write(old[o].name, gone[o], {}, out);
  for (size_t b = 0; b < now.size(); b++) {
    auto was = std::ranges::find(old, now[b].name, &Block::name);
    write(titles[b],
          was == old.end() ? std::vector<Statement>() : gone[static_cast<size_t>(was - old.begin())], come[b],
          out);
  }
  return out;
}

}  // namespace cli
