import { execFile, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const PROGRAM = fileURLToPath(new URL('../../../services/kubectl/src/main.ts', import.meta.url))

/** Runs `kubectl tutti` as a process and resolves when it has ended. @param kubeconfig - path of a file. */
export function runKubectlTutti(
  kubeconfig: string,
  ...args: readonly string[]
): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  return new Promise((settle) => {
    const argv = [PROGRAM, ...args, `--kubeconfig=${kubeconfig}`]
    execFile(process.execPath, argv, (error, out, err) => {
      const code = typeof error?.code === 'number' ? error.code : 1
      settle({ code: error === null ? 0 : code, out, err })
    })
  })
}

/** Starts a command of `kubectl tutti` that runs until the caller kills it. @param kubeconfig - path of a file. */
export function spawnKubectlTutti(kubeconfig: string, ...args: readonly string[]) {
  const child = spawn(process.execPath, [PROGRAM, ...args, `--kubeconfig=${kubeconfig}`])
  let said = ''
  let look: (() => void) | undefined
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text
      look?.()
    })
  }
  return {
    /** Resolves when the whole output so far matches. It rejects if the command ends before. */
    until: (wanted: RegExp): Promise<void> =>
      new Promise((resolve, reject) => {
        look = () => {
          if (wanted.test(said)) resolve()
        }
        child.once('exit', (code) => reject(new Error(`it ended with ${code}: ${said}`)))
        look()
      }),
    kill: (): void => void child.kill(),
  }
}
