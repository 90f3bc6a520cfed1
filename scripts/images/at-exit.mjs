import { constants } from 'node:os'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP']

/**
 * Undoes something, without waiting, if this process exits before it is called off; what came last goes first.
 *
 * @param {() => void} undo
 * @returns {() => void} calls it off.
 */
export function atExit(undo) {
  process.prependOnceListener('exit', undo)
  return () => process.off('exit', undo)
}

/** Has signals make this process exit, so that it undoes what is to be undone. @returns {() => void} ends that. */
export function exitOnSignals() {
  const handlers = SIGNALS.map((signal) => {
    const exit = () => process.exit(128 + constants.signals[signal])
    process.on(signal, exit)
    return () => process.off(signal, exit)
  })
  return () => {
    for (const stop of handlers) stop()
  }
}
