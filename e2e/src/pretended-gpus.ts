import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { tempFolder } from './temp-repository.ts'

const run = promisify(execFile)

/** For tap's `skip`: there is nothing to build a driver with. */
export const withoutCompiler: string | false = await run('cc', ['--version']).then(
  () => false,
  () => 'there is no C compiler (cc)',
)

/** Variables of a process whose CUDA driver says that it has so many GPUs. Nothing can be executed on them. */
export async function pretendGpus(
  t: Test,
  count: number,
): Promise<Readonly<Record<string, string>>> {
  const folder = await tempFolder(t)
  const source = join(folder, 'driver.c')
  const text = `
int cuInit(unsigned int flags) { return 0; }
int cuDeviceGetCount(int *count) { *count = ${count}; return 0; }
int cuGetErrorString(int code, const char **text) { *text = "unknown"; return 0; }
`
  await writeFile(source, text)
  await run('cc', ['-shared', '-fPIC', '-o', join(folder, 'libcuda.so.1'), source])
  return { LD_LIBRARY_PATH: folder }
}
