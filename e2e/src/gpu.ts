import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import type { Serving } from './serving.ts'
import { TORCH_PYTHON, withoutTorch } from './triton-client.ts'

/** The flag by which instances that may choose execute on the first GPU. */
export const ACCELERATOR = '--accelerator=nvidia.com/gpu=1'

/** For tap's `skip`: why nothing can be executed on a GPU, or false. */
export const withoutGpu: string | false =
  !existsSync('/dev/nvidia0') && 'there is no GPU: /dev/nvidia0 does not exist'

/** Models of Python and TorchScript run in the Python with PyTorch. */
export const TORCH_FLAGS: readonly string[] =
  TORCH_PYTHON === undefined
    ? []
    : ['python', 'pytorch'].map((name) => `--backend-config=${name},interpreter=${TORCH_PYTHON}`)

/** For tap's `skip`: why PyTorch cannot use a GPU, or false. */
export async function withoutTorchCuda(): Promise<string | false> {
  const without = withoutGpu || withoutTorch()
  if (without !== false) return without
  const script = 'import torch; print(torch.version.cuda)'
  const { stdout } = await promisify(execFile)(TORCH_PYTHON ?? '', ['-c', script])
  return stdout.trim() === 'None' && `the PyTorch of ${TORCH_PYTHON} was built without CUDA`
}

/** For tap's `skip`: why a Python cannot import a module, or false. */
export async function withoutModule(
  python: string | undefined,
  module: string,
): Promise<string | false> {
  if (python === undefined) return `there is no Python to import ${module}`
  return await promisify(execFile)(python, ['-c', `import ${module}`]).then(
    () => false,
    () => `${python} cannot import ${module}`,
  )
}

/** Process ids of the instances that a server has forked from the interpreters that it started. */
export async function instancesOf({ process: { pid } }: Serving): Promise<readonly number[]> {
  const parents = new Map<number, number>()
  for (const entry of await readdir('/proc')) {
    const stat = await readFile(`/proc/${entry}/stat`, 'utf8').catch(() => '')
    const parent = /^\d+ \(.*\) \S (\d+)/s.exec(stat)?.[1]
    if (parent !== undefined) parents.set(Number(entry), Number(parent))
  }
  return [...parents].filter(([, parent]) => parents.get(parent) === pid).map(([child]) => child)
}
