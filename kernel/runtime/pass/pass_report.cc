// pass_report.cc: the report of passes as JSON.
#include "kernel/base/json.h"
#include "kernel/runtime/pass/pass.h"

namespace keel {

void PassReport::Write(Json& json) const {
  json.Key("level").Int(level);
  json.Key("passes").BeginArray();
  for (const PassRun& run : runs) {
    json.BeginObject();
    json.Key("name").String(run.name);
    json.Key("plugin").String(run.plugin);
    json.Key("ms").Double(run.ms);
    json.Key("edits").Int(static_cast<int64_t>(run.edits));
    for (const auto& [key, text] :
         {std::pair("error", &run.error), std::pair("diff", &run.diff), std::pair("skipped", &run.skipped)})
      if (!text->empty()) json.Key(key).String(*text);
    json.EndObject();
  }
  json.EndArray();
  if (dumps.empty()) return;
  json.Key("dumps").BeginArray();
  for (const PassDump& dump : dumps) {
    json.BeginObject();
    json.Key("pass").String(dump.pass);
    json.Key("text").String(dump.text);
    json.EndObject();
  }
  json.EndArray();
}

}  // namespace keel
