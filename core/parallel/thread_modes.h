/// The modes of autograd on a thread; internal to core.
#pragma once

namespace rill::detail {

/// What NoGrad, DetectAnomaly and RecordObserver set. A parallel_for hands them on to the threads that help.
struct ThreadModes {
  bool recording = true;
  bool anomaly = false;   ///< results and gradients are checked
  bool observed = false;  ///< a RecordObserver lives on this very thread; not handed on

  /// Whether `record` takes the slow way.
  bool watching() const noexcept { return anomaly || observed; }
};

extern constinit thread_local ThreadModes thread_modes;

}  // namespace rill::detail
