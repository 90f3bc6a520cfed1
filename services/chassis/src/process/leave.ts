/**
 * Ends the process at once, whatever its threads do. `process.exit` would stop the threads first: a thread inside ONNX Runtime
 * then delays the exit until it returns, or aborts the process with a core dump. If `isBusy`, the process instead becomes another
 * program, which exits with `code`. Exit handlers, such as those of profilers, do not run then.
 *
 * @param code - from 0 to 255.
 * @param isBusy - whether threads may be running.
 */
export function leave(code: number, isBusy: boolean): void {
  // Windows has no execve.
  if (isBusy && process.execve !== undefined) {
    process.execve(process.execPath, [process.execPath, '--eval', `process.exit(${code})`], {})
  }
  process.exit(code)
}
