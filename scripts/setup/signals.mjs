import { SetupFailure } from './failure.mjs'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP']
const STREAMS = [process.stdout, process.stderr]
const ignore = () => {}

/**
 * Runs work that cleans up behind itself: a signal that would end this process aborts the work instead, and the work goes on where
 * nothing reads its output after that: the same signal may have ended the reader or the terminal.
 *
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} work
 * @returns {Promise<T>} what the work gave.
 */
export async function withSignals(work) {
  const controller = new AbortController()
  const abort = (name) => controller.abort(new SetupFailure(`Stopped by ${name}.`))
  for (const name of SIGNALS) process.on(name, abort)
  for (const stream of STREAMS) stream.on('error', ignore)
  try {
    return await work(controller.signal)
  } finally {
    for (const name of SIGNALS) process.off(name, abort)
    for (const stream of STREAMS) stream.off('error', ignore)
  }
}
