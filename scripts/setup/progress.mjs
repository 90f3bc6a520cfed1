const LINE_MS = 10_000
const DRAW_MS = 1000
const CLEAR = '\r\u001b[K'
/** Columns of a terminal that does not say how many it has. */
const COLUMNS = 80

/**
 * Shows that something goes on: the time that has passed, each second on a terminal, elsewhere in a line every 10 s.
 *
 * @param {string} what - is under way.
 * @param {object} [o]
 * @param {() => string} [o.detail] - what it does just now.
 * @param {{ isTTY?: boolean, columns?: number, write(text: string): unknown }} [o.out]
 * @param {boolean} [o.isShared] - the program itself writes to the terminal: lines only.
 * @param {number} [o.everyMs]
 * @returns {(isDone: boolean) => void} ends it; says how long it took, if there was a line before.
 */
export function showElapsed(what, o = {}) {
  const { detail = () => '', out = process.stderr, isShared = false } = o
  const isDrawn = out.isTTY === true && !isShared && (process.env.TERM ?? 'dumb') !== 'dumb'
  const { everyMs = isDrawn ? DRAW_MS : LINE_MS } = o
  const startedAt = performance.now()
  const seconds = () => `${Math.round((performance.now() - startedAt) / 1000)} s`
  let isShown = false
  const timer = setInterval(() => {
    isShown = true
    const text = `${what}: ${seconds()}  ${printable(detail())}`.trimEnd()
    // Back at its beginning, so that what others write replaces it.
    if (isDrawn) out.write(`${CLEAR}${text.slice(0, (out.columns || COLUMNS) - 1)}\r`)
    else out.write(`${text}\n`)
  }, everyMs)
  return (isDone) => {
    clearInterval(timer)
    if (!isShown) return
    if (isDrawn) out.write(CLEAR)
    if (isDone) out.write(`${what}: done in ${seconds()}\n`)
  }
}

/** Without what a terminal obeys. */
function printable(text) {
  return text.replace(/[\p{Cc}\p{Cf}]/gu, '')
}
