import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const PROGRAM = fileURLToPath(new URL('../../../services/cli/src/kubectl/main.ts', import.meta.url))

/** Runs `kubectl tutti` as a process, as kubectl starts its plugin. @param kubeconfig - a file. */
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
