import type { Screen, ScreenOptions, Terminal } from '@tutti/chassis'

const ESCAPE = '\u001b['
/** The other screen, without cursor and line breaks of its own. */
const ENTER = `${ESCAPE}?1049h${ESCAPE}?25l${ESCAPE}?7l`
const LEAVE = `${ESCAPE}?7h${ESCAPE}?25h${ESCAPE}?1049l`
const HOME = `${ESCAPE}H`
const END_OF_LINE = `${ESCAPE}K`
const END_OF_SCREEN = `${ESCAPE}J`
/** Size of a terminal that does not say it. */
const SIZE = { columns: 80, rows: 24 }

/** Gives the terminal of a process; undefined if its input or output is not a terminal, or TERM is `dumb`. */
export function terminalOf(process: NodeJS.Process): Terminal | undefined {
  const { stdin, stdout, env } = process
  if (!stdin.isTTY || !stdout.isTTY || env['TERM'] === 'dumb') return undefined
  return { openScreen: (o) => openScreen(process, o) }
}

function openScreen(process: NodeJS.Process, { onKey, onResize, onEnd }: ScreenOptions): Screen {
  const { stdin, stdout } = process
  const keys = (bytes: Buffer): void => {
    for (const key of bytes.toString('latin1')) onKey(key)
  }
  let isOpen = true
  const close = (): void => {
    if (!isOpen) return
    isOpen = false
    process.off('exit', close).off('SIGHUP', onEnd)
    stdout.off('resize', onResize)
    stdin.off('data', keys).off('end', onEnd).pause()
    stdin.setRawMode(false)
    stdout.write(LEAVE)
  }
  // Whatever ends the process.
  process.on('exit', close).on('SIGHUP', onEnd)
  stdout.on('resize', onResize)
  stdin.setRawMode(true)
  stdin.on('data', keys).on('end', onEnd).resume()
  stdout.write(ENTER)
  return {
    size: () => ({
      columns: stdout.columns || SIZE.columns,
      rows: stdout.rows || SIZE.rows,
    }),
    draw: (lines) => {
      if (!isOpen) return
      const text = lines.map((line) => `${line}${END_OF_LINE}`).join('\r\n')
      stdout.write(`${HOME}${text}${END_OF_SCREEN}`)
    },
    close,
  }
}
