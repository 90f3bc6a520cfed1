import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { parseLine, ROOT, type Target } from './serving.ts'

/** Python with `tritonclient[all]`, prepared by the test command; undefined where it is not to be had. */
export const PYTHON = process.env['TUTTI_TEST_PYTHON']

/** Python with PyTorch and NumPy, which the test command finds or installs; undefined where it is not to be had. */
export const TORCH_PYTHON = process.env['TUTTI_TEST_TORCH_PYTHON']

/** For tap's `skip`: why there is no PyTorch, or false if there is. */
export function withoutTorch(): string | false {
  if (TORCH_PYTHON !== undefined) return false
  const { TUTTI_TEST_TORCH_MISSING: reason } = process.env
  return reason ?? 'TUTTI_TEST_TORCH_PYTHON names no Python with PyTorch'
}

/** Flags for serving Python models with it: it has what those of model_repository import. */
export const PYTHON_FLAGS: readonly string[] =
  PYTHON === undefined ? [] : [`--backend-config=python,interpreter=${PYTHON}`]

/**
 * Runs a script of e2e/python against a target; each of its checks is one assertion of `t`.
 *
 * @param more - arguments of the script's own.
 */
export function runTritonChecks(
  t: Test,
  script: string,
  target: Pick<Target, 'grpcPort' | 'httpPort'>,
  more: readonly string[] = [],
): Promise<void> {
  return runPythonChecks(t, script, [
    `--grpc=127.0.0.1:${target.grpcPort}`,
    `--http=127.0.0.1:${target.httpPort}`,
    ...more,
  ])
}

/**
 * Runs a script of e2e/python; each of its checks is one assertion of `t`.
 *
 * @param o.hosts - a file that is its /etc/hosts; as root on Linux only.
 */
export async function runPythonChecks(
  t: Test,
  script: string,
  args: readonly string[],
  o: { readonly hosts?: string } = {},
): Promise<void> {
  if (PYTHON === undefined) {
    t.comment('skipped: the Python of the tests is not installed (TUTTI_TEST_PYTHON is not set)')
    return
  }
  const command = [PYTHON, `${ROOT}e2e/python/${script}`, ...args]
  const [program = '', ...rest] = o.hosts === undefined ? command : withHosts(o.hosts, command)
  const { stdout } = await promisify(execFile)(program, rest, { maxBuffer: 64 * 1024 * 1024 })
  const reports = stdout.split('\n').filter((line) => line.startsWith('{'))
  t.ok(reports.length > 0, `${script} ran its checks`)
  for (const { name, ok, detail = '' } of reports.map(parseLine)) {
    t.ok(ok === true, `${String(name)}\n${String(detail)}`.trimEnd())
  }
}

/** In a mount namespace of its own, so that no other process sees the file. */
function withHosts(hosts: string, command: readonly string[]): readonly string[] {
  const script = 'mount --bind "$0" /etc/hosts && exec "$@"'
  return ['unshare', '--mount', 'sh', '-c', script, hosts, ...command]
}
