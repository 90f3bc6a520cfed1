import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { env } from 'node:process'

const MAIN = join(import.meta.dirname, '../main.ts')

/**
 * Writes a program `tutti` into a folder. The program completes as the real one does, and otherwise prints its words: `ran
 * <serve> <--help>`.
 *
 * @returns the environment with the folder in PATH.
 */
export async function installTutti(folder: string): Promise<NodeJS.ProcessEnv> {
  const program = `#!/bin/sh
case $1 in completion) exec '${process.execPath}' '${MAIN}' "$@" ;; esac
printf 'ran'; printf ' <%s>' "$@"; printf '\\n'
`
  await writeFile(join(folder, 'tutti'), program)
  await chmod(join(folder, 'tutti'), 0o755)
  return {
    ...env,
    PATH: `${folder}:${env['PATH'] ?? ''}`,
    TERM: 'dumb',
    TUTTI_COMPLETION_MS: '30000',
  }
}

/** Runs a program to its end. @returns the text of its standard output. */
export async function runProgram(
  program: string,
  argv: readonly string[],
  o: { readonly env: NodeJS.ProcessEnv; readonly cwd?: string },
): Promise<string> {
  const child = spawn(program, argv, { ...o, stdio: ['ignore', 'pipe', 'inherit'] })
  const text = collect(child.stdout)
  await once(child, 'close')
  return text.all
}

/**
 * Opens an interactive shell at a terminal, to type keys. The caller closes it.
 *
 * @param command - command line that starts the shell.
 */
export function openTerminal(
  command: string,
  o: { readonly env: NodeJS.ProcessEnv; readonly cwd?: string },
) {
  const child = spawn('script', ['-qfec', command, '/dev/null'], {
    ...o,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const text = collect(child.stdout)
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null
  return {
    /**
     * Types keys, and waits for a text in the output after them.
     *
     * @returns the text that fits `wanted`.
     * @throws Error if the shell ends.
     */
    async type(keys: string, wanted: RegExp): Promise<string> {
      const from = text.all.length
      child.stdin.write(keys)
      for (;;) {
        const seen = text.all.slice(from)
        const found = wanted.exec(seen)
        if (found !== null) return found[0]
        if (text.hasEnded) throw new Error(`the shell ended: ${JSON.stringify(seen)}`)
        await text.more()
      }
    },
    async close(): Promise<void> {
      if (hasEnded()) return
      child.kill('SIGKILL')
      await once(child, 'close')
    },
  }
}

/** All that came, and a wait for more or for the end. */
function collect(stream: NodeJS.ReadableStream) {
  let wake: (() => void) | undefined
  const text = {
    all: '',
    hasEnded: false,
    more: () => new Promise<void>((resolve) => (wake = resolve)),
  }
  stream.setEncoding('utf8').on('data', (part: string) => {
    text.all += part
    wake?.()
  })
  stream.on('close', () => {
    // The program may be told to have ended only after this.
    text.hasEnded = true
    wake?.()
  })
  return text
}
