// A device that is not the CPU, on any machine with a compiler. What is real about it, and what is not: __init__.py.
//
// NOTE [Operators on the simulated device]
// Memory of the device is memory that the CPU can read, so every operator can be the CPU's own. What is written here is
// what makes or views memory; for anything else the CPU's kernel runs on that memory, and what it makes is copied to the
// device. Results are those of the CPU bit for bit, so whatever differs between both runs differs because of the
// device. These copies are no transfers of the program: they are not counted, and the profiler is not told of them.

#include <ATen/EmptyTensor.h>
#include <ATen/autocast_mode.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/ops/_fused_sdp_choice_native.h>
#include <ATen/ops/as_strided_cpu_dispatch.h>
#include <ATen/record_function.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/extension.h>

#include <atomic>
#include <mutex>
#include <unordered_set>

namespace {

constexpr auto SIM = c10::DeviceType::PrivateUse1;
constexpr c10::DeviceIndex DEVICES = 2;

thread_local c10::DeviceIndex current = 0;
thread_local bool is_falling_back = false;
thread_local std::shared_ptr<c10::ThreadLocalDebugInfo> outside;  // who is told of memory, outside of the fallback

// ---- Devices, streams and events. A stream has run what it was given when the call returns, so events have happened.

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return SIM; }
  c10::DeviceIndex deviceCount() const noexcept override { return DEVICES; }
  c10::Device getDevice() const override { return {SIM, current}; }
  c10::Device exchangeDevice(c10::Device device) const override {
    c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  void setDevice(c10::Device device) const override {
    TORCH_CHECK(device.index() < DEVICES, "There are ", int(DEVICES), " simulated devices.");
    uncheckedSetDevice(device);
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.index() >= 0) current = device.index();
  }
  c10::Stream getStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream getNewStream(c10::Device device, int) const override { return getStream(device); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override { return getStream(device); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return getStream(stream.device()); }
  void record(void**, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeEvent(void*) const override {}
  void synchronizeDevice(const c10::DeviceIndex) const override {}
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

// ---- Memory: counted for each device, and reported to torch's profiler as CUDA's is.

struct Counts {
  size_t allocated = 0, peak = 0, allocations = 0;
};
std::mutex counting;
Counts counts[DEVICES];

struct Block {
  void* data;
  size_t bytes;
  c10::DeviceIndex device;
};

void report(const Block& block, int64_t change, size_t total) {
  std::optional<c10::DebugInfoGuard> told;
  if (is_falling_back) told.emplace(outside);
  c10::reportMemoryUsageToProfiler(block.data, change, total, total, {SIM, block.device});
}

void release(void* context) {
  std::unique_ptr<Block> block(static_cast<Block*>(context));
  size_t total = 0;
  {
    std::lock_guard lock(counting);
    total = counts[block->device].allocated -= block->bytes;
  }
  report(*block, -static_cast<int64_t>(block->bytes), total);
  c10::free_cpu(block->data);
}

struct DeviceMemory final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    auto* block = new Block{bytes ? c10::alloc_cpu(bytes) : nullptr, bytes, current};  // aligned: kernels sum alike
    size_t total = 0;
    {
      std::lock_guard lock(counting);
      Counts& count = counts[block->device];
      total = count.allocated += bytes;
      count.peak = std::max(count.peak, total);
      count.allocations += bytes != 0;
    }
    if (bytes) report(*block, static_cast<int64_t>(bytes), total);
    return {block->data, block, &release, {SIM, block->device}};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
};
DeviceMemory memory;
REGISTER_ALLOCATOR(SIM, &memory);

std::mutex pinning;
std::unordered_set<const void*> pinned;

void unpin(void* data) {
  {
    std::lock_guard lock(pinning);
    pinned.erase(data);
  }
  std::free(data);
}

struct PinnedMemory final : c10::Allocator {  // memory of the CPU, of which the device knows
  c10::DataPtr allocate(size_t bytes) override {
    void* data = std::malloc(std::max<size_t>(bytes, 1));
    std::lock_guard lock(pinning);
    pinned.insert(data);
    return {data, data, &unpin, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &unpin; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
};
PinnedMemory pinned_memory;

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return DEVICES; }
  c10::DeviceIndex getCurrentDevice() const override { return current; }
  void setCurrentDevice(c10::DeviceIndex index) const override { Guard().setDevice({SIM, index}); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    return Guard().exchangeDevice({SIM, index}).index();
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override { return exchangeDevice(index); }
  bool isPinnedPtr(const void* data) const override {
    std::lock_guard lock(pinning);
    return pinned.count(data) != 0;
  }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_memory; }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    c10::DeviceGuard guard(storage.device());
    auto data = memory.allocate(bytes);
    if (storage.nbytes()) std::memcpy(data.get(), storage.data(), std::min(bytes, storage.nbytes()));
    storage.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(data));
    storage.unsafeGetStorageImpl()->set_nbytes(bytes);
  }
};
struct Registration {
  Registration() { at::RegisterPrivateUse1HooksInterface(new Hooks()); }
} registration;

// ---- Witnesses: what waits for the device.

std::atomic<size_t> values_read{0}, copies_to_host{0}, copies_from_host{0};

// ---- Operators that make or view memory.

c10::Device device_of(std::optional<at::Device> device) {
  return {SIM, device && device->has_index() ? device->index() : current};
}

c10::DispatchKeySet keys() { return c10::DispatchKeySet(c10::DispatchKey::PrivateUse1); }

at::Tensor empty_strided(
    at::IntArrayRef size, at::IntArrayRef stride, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
    std::optional<at::Device> device, std::optional<bool>) {
  c10::DeviceGuard guard(device_of(device));
  return at::detail::empty_strided_generic(size, stride, &memory, keys(), c10::dtype_or_default(dtype));
}

at::Tensor empty(
    at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
    std::optional<at::Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  c10::DeviceGuard guard(device_of(device));
  return at::detail::empty_generic(size, &memory, keys(), c10::dtype_or_default(dtype), format);
}

at::Tensor on_cpu(const at::Tensor& tensor) {  // the same memory, as the CPU sees it
  if (tensor.device().type() != SIM) return tensor;
  return at::from_blob(
      tensor.mutable_data_ptr(), tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool) {
  if (!is_falling_back && from.device().type() != to.device().type()) {
    ++(to.device().type() == SIM ? copies_from_host : copies_to_host);
  }
  on_cpu(to).copy_(on_cpu(from));
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  to.resize_(from.sizes());
  return copy_from(from, to, false);
}

at::Scalar local_scalar_dense(const at::Tensor& tensor) {
  if (!is_falling_back) ++values_read;
  return on_cpu(tensor).item();
}

const at::Tensor& resize_(const at::Tensor& tensor, at::SymIntArrayRef size, std::optional<at::MemoryFormat>) {
  auto* impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(C10_AS_INTARRAYREF_SLOW(size));
  size_t bytes = (impl->storage_offset() + impl->numel()) * impl->itemsize();
  if (bytes > tensor.storage().nbytes()) at::detail::getPrivateUse1Hooks().resizePrivateUse1Bytes(tensor.storage(), bytes);
  return tensor;
}

at::Tensor as_strided(
    const at::Tensor& tensor, at::IntArrayRef size, at::IntArrayRef stride, std::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(tensor, size, stride, offset);
}

at::Tensor& set_storage_(
    at::Tensor& tensor, at::Storage storage, int64_t offset, at::IntArrayRef size, at::IntArrayRef stride) {
  return at::native::set_storage_cpu_(tensor, std::move(storage), offset, size, stride);
}

// ---- Everything else: NOTE [Operators on the simulated device].

struct Untold final : c10::MemoryReportingInfoBase {
  void reportMemoryUsage(void*, int64_t, size_t, size_t, c10::Device) override {}
  bool memoryProfilingEnabled() const override { return false; }
};

struct Falling {  // from here to the end of the block, memory of the CPU and copies are not the program's
  bool before = is_falling_back;
  at::RecordFunctionGuard unrecorded{false};
  std::optional<c10::DebugInfoGuard> untold;
  Falling() {
    if (before) return;
    outside = c10::ThreadLocalDebugInfo::current();
    untold.emplace(c10::DebugInfoKind::PROFILER_STATE, std::make_shared<Untold>());
    is_falling_back = true;
  }
  ~Falling() {
    is_falling_back = before;
    if (!before) outside.reset();
  }
};

std::vector<at::Tensor> tensors_in(const c10::IValue& value) {
  if (value.isTensor()) return {value.toTensor()};
  if (value.isTensorList()) return value.toTensorVector();
  std::vector<at::Tensor> found;
  if (value.isOptionalTensorList()) {
    for (const auto& one : value.toOptionalTensorVector()) found.push_back(one ? *one : at::Tensor());
  }
  return found;
}

bool is_view(const c10::AliasInfo* alias) { return alias && !alias->isWrite(); }

// The device of a call that returns no view and gives nothing another size, if it has one device only.
std::optional<c10::Device> only_device(const c10::FunctionSchema& schema, at::ArrayRef<c10::IValue> arguments) {
  std::optional<c10::Device> device;
  for (const auto& returned : schema.returns()) {
    if (is_view(returned.alias_info())) return std::nullopt;
  }
  for (size_t n = 0; n < arguments.size(); ++n) {
    const auto* alias = schema.arguments()[n].alias_info();
    if (is_view(alias) || arguments[n].isDevice()) return std::nullopt;
    for (const auto& tensor : tensors_in(arguments[n])) {
      if (!tensor.defined() || (tensor.is_cpu() && tensor.dim() == 0)) continue;
      if (tensor.layout() != at::kStrided || tensor.device().type() != SIM) return std::nullopt;
      if (alias && tensor.numel() == 0) return std::nullopt;
      if (device && *device != tensor.device()) return std::nullopt;
      device = tensor.device();
    }
  }
  return device;
}

template <typename Change>
c10::IValue changed(const c10::IValue& value, Change change) {
  auto one = [&](const at::Tensor& tensor) { return tensor.defined() ? change(tensor) : tensor; };
  if (value.isTensor()) return one(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> tensors;
    for (const auto& tensor : value.toTensorVector()) tensors.push_back(one(tensor));
    return tensors;
  }
  if (!value.isOptionalTensorList()) return value;
  c10::List<std::optional<at::Tensor>> tensors;
  for (const auto& tensor : value.toOptionalTensorVector()) {
    tensors.push_back(tensor ? std::optional<at::Tensor>(one(*tensor)) : std::nullopt);
  }
  return tensors;
}

void fall_back(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Falling falling;
  const auto& schema = op.schema();
  std::vector<c10::IValue> arguments(stack->end() - schema.arguments().size(), stack->end());
  auto device = only_device(schema, arguments);
  if (!device) return at::native::cpu_fallback(op, stack);
  c10::DeviceGuard guard(*device);  // kernels sum in an order that follows from the strides: they must be the same
  for (size_t n = 0; n < arguments.size(); ++n) {
    (*stack)[stack->size() - arguments.size() + n] = changed(arguments[n], on_cpu);
  }
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
  std::vector<c10::IValue> written;
  for (size_t n = 0; n < arguments.size(); ++n) {
    if (schema.arguments()[n].alias_info()) written.push_back(arguments[n]);
  }
  size_t first = stack->size() - schema.returns().size(), next = 0;
  for (size_t n = first; n < stack->size(); ++n) {
    bool is_written = schema.returns()[n - first].alias_info() && next < written.size();
    (*stack)[n] = is_written ? written[next++] : changed((*stack)[n], [&](const at::Tensor& one) { return one.to(*device); });
  }
}

at::Tensor to_device(const at::Tensor& tensor, const at::Tensor& like) {
  return tensor.defined() ? tensor.to(like.device()) : tensor;
}

at::Tensor to_cpu(const std::optional<at::Tensor>& tensor) {
  return tensor && tensor->defined() ? tensor->cpu() : at::Tensor();
}

at::Tensor convolution(
    const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias, at::SymIntArrayRef stride,
    at::SymIntArrayRef padding, at::SymIntArrayRef dilation, bool transposed, at::SymIntArrayRef output_padding,
    c10::SymInt groups) {
  Falling falling;
  auto result = at::convolution_symint(
      input.cpu(), weight.cpu(), to_cpu(bias), stride, padding, dilation, transposed, output_padding, groups);
  return to_device(result, input);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight, at::SymIntArrayRef stride,
    at::SymIntArrayRef padding, at::SymIntArrayRef dilation, bool transposed, at::SymIntArrayRef output_padding,
    c10::SymInt groups, std::array<bool, 3> wanted) {
  Falling falling;
  std::vector<c10::SymInt> bias_size{gradient.sym_size(1)};
  auto [input_gradient, weight_gradient, bias_gradient] = at::convolution_backward_symint(
      gradient.cpu(), input.cpu(), weight.cpu(), c10::SymIntArrayRef(bias_size), stride, padding, dilation, transposed,
      output_padding, groups, wanted);
  return {to_device(input_gradient, input), to_device(weight_gradient, input), to_device(bias_gradient, input)};
}

// Recurrent cells are fused on accelerators, and not on the CPU.

at::Tensor plus(const at::Tensor& tensor, const std::optional<at::Tensor>& bias) {
  return bias && bias->defined() ? tensor + *bias : tensor;
}

at::Tensor or_zeros(const std::optional<at::Tensor>& gradient, const at::Tensor& like) {
  return gradient && gradient->defined() ? *gradient : at::zeros_like(like);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell(
    const at::Tensor& from_input, const at::Tensor& from_hidden, const at::Tensor& cell,
    const std::optional<at::Tensor>& input_bias, const std::optional<at::Tensor>& hidden_bias) {
  auto gates = (plus(from_input, input_bias) + plus(from_hidden, hidden_bias)).chunk(4, 1);
  auto in = gates[0].sigmoid(), forget = gates[1].sigmoid(), added = gates[2].tanh(), out = gates[3].sigmoid();
  auto next_cell = forget * cell + in * added;
  return {out * next_cell.tanh(), next_cell, at::cat({in, forget, added, out}, 1)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell_backward(
    const std::optional<at::Tensor>& hidden_gradient, const std::optional<at::Tensor>& cell_gradient,
    const at::Tensor& cell, const at::Tensor& next_cell, const at::Tensor& workspace, bool has_bias) {
  auto gates = workspace.chunk(4, 1);
  auto in = gates[0], forget = gates[1], added = gates[2], out = gates[3], squashed = next_cell.tanh();
  auto of_hidden = or_zeros(hidden_gradient, next_cell);
  auto of_cell = of_hidden * out * (1 - squashed * squashed) + or_zeros(cell_gradient, next_cell);
  auto of_gates = at::cat(
      {of_cell * added * in * (1 - in), of_cell * cell * forget * (1 - forget), of_cell * in * (1 - added * added),
       of_hidden * squashed * out * (1 - out)},
      1);
  return {of_gates, of_cell * forget, has_bias ? of_gates.sum(0) : at::Tensor()};
}

std::tuple<at::Tensor, at::Tensor> gru_cell(
    const at::Tensor& from_input, const at::Tensor& from_hidden, const at::Tensor& hidden,
    const std::optional<at::Tensor>& input_bias, const std::optional<at::Tensor>& hidden_bias) {
  auto ins = plus(from_input, input_bias).chunk(3, 1), hiddens = plus(from_hidden, hidden_bias).chunk(3, 1);
  auto reset = (ins[0] + hiddens[0]).sigmoid(), update = (ins[1] + hiddens[1]).sigmoid();
  auto added = (ins[2] + reset * hiddens[2]).tanh();
  return {added + update * (hidden - added), at::cat({reset, update, added, hidden, hiddens[2]}, 1)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor> gru_cell_backward(
    const at::Tensor& gradient, const at::Tensor& workspace, bool has_bias) {
  auto parts = workspace.chunk(5, 1);
  auto reset = parts[0], update = parts[1], added = parts[2], hidden = parts[3], from_hidden = parts[4];
  auto of_update = gradient * (hidden - added) * update * (1 - update);
  auto of_added = gradient * (1 - update) * (1 - added * added);
  auto of_reset = of_added * from_hidden * reset * (1 - reset);
  auto of_input = at::cat({of_reset, of_update, of_added}, 1);
  auto of_hidden = at::cat({of_reset, of_update, of_added * reset}, 1);
  return {
      of_input, of_hidden, gradient * update, has_bias ? of_input.sum(0) : at::Tensor(),
      has_bias ? of_hidden.sum(0) : at::Tensor()};
}

// It writes to the running statistics, of which its schema says nothing: falling back would lose what it wrote.
std::tuple<at::Tensor, at::Tensor, at::Tensor> batch_norm(
    const at::Tensor& input, const std::optional<at::Tensor>& weight, const std::optional<at::Tensor>& bias,
    const std::optional<at::Tensor>& running_mean, const std::optional<at::Tensor>& running_var, bool training,
    double momentum, double eps) {
  auto seen = [](const std::optional<at::Tensor>& one) {
    return one && one->defined() ? std::optional<at::Tensor>(on_cpu(*one)) : std::nullopt;
  };
  auto [output, mean, deviation] = at::native_batch_norm(
      on_cpu(input), seen(weight), seen(bias), seen(running_mean), seen(running_var), training, momentum, eps);
  return {to_device(output, input), to_device(mean, input), to_device(deviation, input)};
}

// On the CPU and on CUDA alike, the loss is left in the memory of the differences, of which it is the mean.
at::Tensor reduced_in_place(const at::Tensor& input, const at::Tensor& loss, int64_t reduction) {
  if (reduction == at::Reduction::None) return to_device(loss, input);
  c10::DeviceGuard guard(input.device());
  auto differences = at::empty_like(loss, input.options().dtype(loss.scalar_type()));
  auto result = at::empty_like(differences);
  result.resize_({}).copy_(reduction == at::Reduction::Mean ? loss.mean() : loss.sum());
  return result;
}

at::Tensor mse_loss(const at::Tensor& input, const at::Tensor& target, int64_t reduction) {
  Falling falling;
  return reduced_in_place(input, at::mse_loss(on_cpu(input), on_cpu(target), at::Reduction::None), reduction);
}

at::Tensor smooth_l1_loss(const at::Tensor& input, const at::Tensor& target, int64_t reduction, double beta) {
  Falling falling;
  auto loss = at::smooth_l1_loss(on_cpu(input), on_cpu(target), at::Reduction::None, beta);
  return reduced_in_place(input, loss, reduction);
}

torch::CppFunction falls_back() { return torch::CppFunction::makeFromBoxedFunction<&fall_back>(); }

}  // namespace

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &_fused_sdp_choice_cpp)  // attention as on the CPU
}  // namespace at::native

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(falls_back()); }

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("as_strided", &as_strided);
  m.impl("resize_", &resize_);
  m.impl("set_.source_Storage_storage_offset", &set_storage_);
  m.impl("set_.source_Storage", [](at::Tensor& tensor, at::Storage storage) -> at::Tensor& {
    int64_t length = static_cast<int64_t>(storage.nbytes() / tensor.itemsize());
    return set_storage_(tensor, std::move(storage), 0, {length}, {});
  });
  m.impl("set_.source_Tensor", &at::native::set_tensor_);
  m.impl("view", [](const at::Tensor& tensor, at::IntArrayRef size) { return at::native::view(tensor, size); });
  m.impl("unfold", &at::native::unfold);
  m.impl("view_as_real", &at::native::view_as_real);
  m.impl("view_as_complex", &at::native::view_as_complex);
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("_local_scalar_dense", &local_scalar_dense);
  m.impl("convolution_overrideable", &convolution);
  m.impl("convolution_backward_overrideable", &convolution_backward);
  m.impl("native_batch_norm", &batch_norm);
  m.impl("mse_loss", &mse_loss);
  m.impl("smooth_l1_loss", &smooth_l1_loss);
  m.impl("_thnn_fused_lstm_cell", &lstm_cell);
  m.impl("_thnn_fused_lstm_cell_backward_impl", &lstm_cell_backward);
  m.impl("_thnn_fused_gru_cell", &gru_cell);
  m.impl("_thnn_fused_gru_cell_backward", &gru_cell_backward);
  // The CPU and CUDA have a kernel for each of these; a device without one would run several operators in its place.
  for (const char* name : {"native_layer_norm", "native_group_norm", "silu_backward", "mish_backward"}) {
    m.impl(name, falls_back());
  }
}

// Autocast, for the operators of most programs, by the CPU's rules: it rounds losses less than CUDA does.
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
  AT_FORALL_LOWER_PRECISION_FP(LOWER)
#undef LOWER
  KERNEL_PRIVATEUSEONE(mse_loss, fp32)
  KERNEL_PRIVATEUSEONE(l1_loss, fp32)
  KERNEL_PRIVATEUSEONE(nll_loss, fp32)
  KERNEL_PRIVATEUSEONE(cross_entropy_loss, fp32)
  KERNEL_PRIVATEUSEONE(binary_cross_entropy_with_logits, fp32)
  KERNEL_PRIVATEUSEONE(cat, promote)
  KERNEL_PRIVATEUSEONE(stack, promote)
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("allocated", [](int device) { std::lock_guard lock(counting); return counts[device].allocated; });
  m.def("peak", [](int device) { std::lock_guard lock(counting); return counts[device].peak; });
  m.def("allocations", [](int device) { std::lock_guard lock(counting); return counts[device].allocations; });
  m.def("reset_peak", [](int device) { std::lock_guard lock(counting); counts[device].peak = counts[device].allocated; });
  m.def("current_device", [] { return current; });
  m.def("set_device", [](int device) { Guard().setDevice({SIM, static_cast<c10::DeviceIndex>(device)}); });
  m.def("values_read", [] { return values_read.load(); });
  m.def("copies_to_host", [] { return copies_to_host.load(); });
  m.def("copies_from_host", [] { return copies_from_host.load(); });
}
