import { execFileSync } from 'node:child_process'

/** The interpreter that `npm run bench` made of bench/python/requirements.txt. @throws Error without one. */
export function benchPython(): { readonly python: string; readonly version: string } {
  const python = process.env['TUTTI_BENCH_PYTHON']
  if (python === undefined) {
    throw new Error('TUTTI_BENCH_PYTHON is not set: run it by npm run bench')
  }
  const program = 'import sys; print("%d.%d" % sys.version_info[:2])'
  const version = execFileSync(python, ['-c', program], { encoding: 'utf8' }).trim()
  return { python, version }
}
