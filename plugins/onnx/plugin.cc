// plugin.cc: registers one importer, for .onnx files, which also saves them.
#include <new>
#include <stdexcept>

#include "plugins/onnx/export/save.h"
#include "plugins/onnx/import/importer.h"
#include "plugins/onnx/import/text.h"
#include "plugins/onnx/model/wire.h"

namespace onnx_import {
namespace {

// ONNX files have no magic number: probe checks that the bytes parse as a message with a model's fields.
int32_t probe(const uint8_t* data, uint64_t size) {
  bool ir_version = false, graph = false;
  try {
    for (Wire w({reinterpret_cast<const char*>(data), size}); w.next();) {
      ir_version |= w.field == 1 && w.integer() > 0 && w.integer() < 1000;
      graph |= w.field == 7 && !w.text().empty();
      if (w.field > 100) return 0;
    }
  } catch (const Failure&) {  // also if `data` is only the beginning of the file
    return ir_version ? 30 : 0;
  }
  return ir_version && graph ? 90 : 0;
}

template <class Work>
keel_rc guarded(const keel_host* host, const char* no_memory, Work work) {
  try {
    work();
    return KEEL_OK;
  } catch (const Failure& f) {
    return f.text.empty() ? f.rc : host->fail(f.rc, readable(f.text).c_str());
  } catch (const std::bad_alloc&) {
    return host->fail(KEEL_OOM, no_memory);
  } catch (const std::out_of_range&) {
    return host->fail(KEEL_INVALID, "a node of the ONNX model has too few list entries");
  } catch (const std::exception& e) {
    return host->fail(KEEL_INTERNAL, e.what());
  }
}

keel_rc import(const keel_host* host, const keel_source* source, const keel_kv* options, uint32_t n_options,
               keel_edit* edit) {
  return guarded(host, "out of memory while importing an ONNX model", [&] {
    Importer(host, source, {options, n_options}, edit).run();
  });
}

keel_rc save(const keel_host* host, keel_edit* edit, const keel_sink* sink) {
  return guarded(host, "out of memory while writing an ONNX model",
                 [&] { onnx_export::save(host, edit, sink); });
}

int32_t keeps(const keel_host* host, const keel_node* node) {
  bool whole = false;
  guarded(host, "out of memory while writing an ONNX model", [&] { whole = onnx_export::keeps(host, node); });
  return static_cast<int32_t>(whole);
}

const keel_importer kImporters[] = {{"onnx", "onnx", probe, import, onnx_export::composites(), save, keeps}};
const keel_plugin kPlugin = {KEEL_PLUGIN_HEADER,
                             "onnx",
                             "0.1.0",
                             "reads ONNX models, opsets 1 to 28, and writes them",
                             nullptr,
                             nullptr,
                             0,
                             0,
                             nullptr,
                             KEEL_ARRAY(kImporters),
                             nullptr,
                             0,
                             0};

}  // namespace
}  // namespace onnx_import

KEEL_PLUGIN(onnx_import::kPlugin)
