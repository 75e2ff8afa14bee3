#include <translator/text/line_reader.h>

#include <algorithm>
#include <string_view>

#include <rill/core/error.h>
#include <translator/text/file_kind.h>

namespace translator {

LineReader::LineReader(const std::string& path, const LineLimits& limits)
    : source_(path, limits.max_bytes), path_(path), max_line_bytes_(limits.max_line_bytes) {
  begin();
}

LineReader::LineReader(int descriptor, const std::string& name, const LineLimits& limits)
    : source_(descriptor, name, limits.max_bytes), path_("FILE"), max_line_bytes_(limits.max_line_bytes) {}

/// Checks the first bytes: four or more, but none after the first line, which may come from a keyboard.
void LineReader::begin() {
  while (buffer_.size() < 4 && buffer_.find('\n') == std::string::npos && source_.read(buffer_)) {
  }
  if (const auto why = unreadable_reason(buffer_, path_)) {
    rill::fail("{}: {}", name(), *why);
  }
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  used_ = buffer_.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
}

bool LineReader::refill() {
  buffer_.clear();
  used_ = 0;
  return source_.read(buffer_);
}

/// Appends the next bytes, which hold no LF, to the line, up to its limit, and counts their CRs.
void LineReader::append(std::string& line, std::size_t bytes) {
  const std::string_view part = std::string_view(buffer_).substr(used_, bytes);
  if (!part.empty()) {
    const auto returns = std::count(part.begin(), part.end(), '\r');
    lone_returns_ +=
        static_cast<std::uint64_t>(returns) + (return_open_ ? 1 : 0) - (part.back() == '\r' ? 1 : 0);
    return_open_ = part.back() == '\r';
  }
  const std::size_t room = max_line_bytes_ - line.size();
  cut_ = cut_ || bytes > room;
  line.append(part.substr(0, room));
  used_ += bytes;
}

bool LineReader::next(std::string& line) {
  line.clear();
  cut_ = false;
  if (number_ == 0 && buffer_.empty()) {
    begin();
  }
  bool any = false;
  while (used_ < buffer_.size() || refill()) {
    any = true;
    const std::size_t end = buffer_.find('\n', used_);
    append(line, (end == std::string::npos ? buffer_.size() : end) - used_);
    if (end != std::string::npos) {
      ++used_;
      ++line_feeds_;
      return_open_ = false;
      break;
    }
  }
  if (!any || buffer_.empty()) {
    check_ends();
  }
  number_ += any ? 1 : 0;
  line.erase(line.find_last_not_of('\r') + 1);
  return any;
}

/// At the end of the file: throws if its lines end in CR alone, as on old Macs.
void LineReader::check_ends() const {
  const std::uint64_t returns = lone_returns_ + (return_open_ ? 1 : 0);
  rill::check(returns <= line_feeds_,
              "{}: its lines end in CR alone ({} CRs, {} LFs); convert it: tr '\\r' '\\n' < {} > lf.tsv",
              name(), returns, line_feeds_, shell_word(path_));
}

}  // namespace translator
