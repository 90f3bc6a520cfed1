/**
 * Ends the process at once, whatever its threads do. `process.exit` stops them first, and a thread that is inside ONNX
 * Runtime then aborts the process: SIGABRT and a core dump instead of the code. To become another program ends them as they
 * stand.
 *
 * @param code - from 0 to 255.
 */
export function leave(code: number): void {
  // With 0 everything was closed, so no thread runs and the usual way does no harm. Windows has no execve.
  if (code !== 0 && process.execve !== undefined) {
    process.execve(process.execPath, [process.execPath, '--eval', `process.exit(${code})`], {})
  }
  process.exit(code)
}
