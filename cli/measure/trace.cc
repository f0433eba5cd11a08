// trace.cc: writes the launches of a profile to libkeel's timeline: one track per device and lane; devices
// other than the requested one are marked as fallback.
#include <algorithm>
#include <cmath>

#include "cli/data/load.h"
#include "cli/measure/profile.h"
#include "cli/show/print.h"

namespace cli {
namespace {

// The device of each launch.
std::vector<std::string> tracks_of(const Profile& profile, const Json& report) {
  const std::string device = cell(report.at("device"));
  std::vector<std::string> tracks(profile.nodes.size(), device);
  const Json launches = report.value("launches", Json::array());
  for (size_t i = 0; i < std::min(tracks.size(), launches.size()); i++)
    if (const std::string on = cell(launches[i].at("device")); on != device) tracks[i] = on + " (fallback)";
  return tracks;
}

}  // namespace

void show_launches(const Profile& profile, const Json& report) {
  const std::vector<std::string> tracks = tracks_of(profile, report);
  for (const Span& span : profile.spans) {
    const Node& node = profile.nodes[span.node];
    const std::string lane = span.lane ? ", lane " + std::to_string(span.lane) : "";
    const Json args{{"op", node.op},
                    {"impl", node.impl},
                    {"run", span.run},
                    {"flops", std::isnan(node.work.flops) ? Json() : Json(node.work.flops)},
                    {"bytes", node.work.bytes}};
    keel_timeline_span((tracks[span.node] + lane).c_str(), node.name.c_str(), node.op.c_str(), span.begin_ns,
                       span.end_ns, args.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  }
}

}  // namespace cli
