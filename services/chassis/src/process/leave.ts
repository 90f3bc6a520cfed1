/**
 * Ends the process at once, whatever its threads do. `process.exit` stops them first: a thread that is inside ONNX Runtime
 * then holds the process until it returns, or aborts it with a core dump instead of the code. To become another program ends
 * them as they stand, but runs nothing that waits for the exit, as profilers do.
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
