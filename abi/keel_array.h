/* keel_array.h: arrays, and ops applied to them. Part of keel.h.
 *
 * An array is a tensor in host or device memory; it keeps its device open. The host cannot read an array on a
 * device: functions that need host memory return KEEL_PRECONDITION and name the device. A device with its own
 * memory may still compute such an array: runs return once they are encoded, and other runs may take the
 * array at once. If a run fails on its data, reading one of its results returns the error, and so does
 * reading what was computed from it. A symbolic array is a value of a trace (keel_trace.h): it has a dtype
 * and dims but no elements; functions that need elements refuse it by name. */
#ifndef KEEL_ARRAY_H
#define KEEL_ARRAY_H
#include "keel_handle.h"
#ifdef __cplusplus
extern "C" {
#endif
struct DLManagedTensor; /* dlpack.h, which need not be included */
struct DLManagedTensorVersioned;

/* An array of zeros: row-major, 64-byte aligned, in host memory. dtype: a keel_dtype_id. KEEL_OOM: it is
 * larger than 2^40 bytes, than the context's option "memory", or than the memory that is free. */
KEEL_API keel_rc keel_array_new(keel_context* context, keel_dt dtype, const int64_t* shape KEEL_COUNT(ndim),
                                int32_t ndim, keel_array** out, keel_error** err);
/* release NULL: the elements are copied, and arg is ignored. Else no copy: the elements, aligned to their
 * size, must live until release(arg) is called, once, by the thread that drops the last reference (static
 * memory: pass a release that does nothing). Elements must lie in host memory (DLPack's device types 1 and
 * 3), within 2^40 bytes of data. shape and strides are copied. */
KEEL_API keel_rc keel_array_from_tensor(keel_context* context, const keel_tensor* tensor,
                                        KEEL_NULLABLE KEEL_KEPT void (*release)(void* arg),
                                        KEEL_KEPT void* arg, keel_array** out, keel_error** err);
/* DLPack, without a copy; exactly one of `versioned` and `legacy` (the form without a version) is not NULL.
 * On success Keel owns the tensor, and calls its deleter when done. The elements are ready, and in host
 * memory or in memory of a device whose plugin can use it (keel_device.segment_wrap), then row-major; else
 * KEEL_UNIMPLEMENTED. The deleter of device memory is called once the device no longer uses it: when the last
 * reference is dropped, or at the start of a later run on the device, or when it is closed. */
KEEL_API keel_rc keel_array_from_dlpack(keel_context* context,
                                        KEEL_NULLABLE KEEL_TAKEN struct DLManagedTensorVersioned* versioned,
                                        KEEL_NULLABLE KEEL_TAKEN struct DLManagedTensor* legacy,
                                        keel_array** out, keel_error** err);
/* The reverse: the tensor shares the array's memory, which lives until the consumer calls the deleter, after
 * its own work on it is done. For an array on a device it waits as keel_array_wait does; data is the device
 * address, and the device type and id are those of the device. */
KEEL_API keel_rc keel_array_to_dlpack(keel_array* array,
                                      KEEL_NULLABLE struct DLManagedTensorVersioned** versioned,
                                      KEEL_NULLABLE struct DLManagedTensor** legacy, keel_error** err);

/* The array's type and memory; pointers are valid as long as the array. For an array on a device, `device` is
 * not {1, 0} and data is no host pointer. Symbolic: data is NULL, and a dim that is not a number -1. */
KEEL_API void keel_array_tensor(const keel_array* array, keel_tensor* out);
/* A dim as text: a number, or an expression in symbols for a symbolic array. axis -1: the last. KEEL_RANGE:
 * there is no such axis. */
KEEL_API keel_rc keel_array_dim(const keel_array* array, int64_t axis, keel_text** out, keel_error** err);
KEEL_API int32_t keel_array_symbolic(const keel_array* array); /* 1: a value of a trace */

/* device NULL: host memory, which devices that compute on host memory share. Gives the same array, retained,
 * if it is there already, else a copy. A copy to a device may still be in flight when this returns. A copy to
 * the host waits for the array and is complete; keel_context_cancel ends the wait. The error of the run that
 * computes the array, if it failed. */
KEEL_API keel_rc keel_array_to(keel_context* context, keel_array* array, KEEL_NULLABLE const char* device,
                               keel_array** out, keel_error** err);
/* Waits until the array is computed or copied, and submits its work if it was not; the error of the run that
 * computes it, if it failed. Not ended by keel_context_cancel. */
KEEL_API keel_rc keel_array_wait(keel_array* array, keel_error** err);
/* "cuda:0"; "" for host memory and symbolic arrays. Valid as long as the array. */
KEEL_API const char* keel_array_device(const keel_array* array);
KEEL_API keel_array* keel_array_retain(keel_array* array); /* adds a reference; returns the same array */
KEEL_API void keel_array_free(keel_array* array);          /* drops a reference */

/* ---- ops: an op handle binds device, op and attributes once, and is applied often */
/* The report "ops" lists the ops with their versions and attributes. Attributes that are not given have their
 * defaults. KEEL_NOT_FOUND: no such device, op or version. */
KEEL_API keel_rc keel_op_new(keel_context* context, const char* device, const char* op,
                             uint32_t version /* 0: newest */,
                             const char* const* attr_names KEEL_COUNT(n_attrs),
                             const keel_attr* attrs KEEL_COUNT(n_attrs), uint32_t n_attrs, keel_op** out,
                             keel_error** err);
KEEL_API void keel_op_free(keel_op* op);
/* in: a NULL entry is an omitted optional operand. n_out must be the op's number of results. Results are in
 * the device's memory. If an operand is symbolic, nothing runs: a node is added to its trace, and the results
 * are symbolic. */
KEEL_API keel_rc keel_apply(keel_op* op, KEEL_HOLES keel_array* const* in KEEL_COUNT(n_in), uint32_t n_in,
                            keel_array** out KEEL_COUNT(n_out), uint32_t n_out, keel_error** err);

#ifdef __cplusplus
}
#endif
#endif
