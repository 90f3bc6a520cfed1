import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { summarizeProblems } from '@tutti/graph'
import type { PlainObject } from '@tutti/kube/testing'
import { ACCEPTED, type CheckResult, type CheckResults } from './check-result.ts'

const TUTTI = new URL('../../../../services/cli/dist/main.js', import.meta.url).pathname

interface Found {
  readonly file: string
  readonly resource: string
  readonly reason: string
  readonly message: string
}

/**
 * Runs `tutti validate` once for all sets of manifests. Each set has its own namespace and file.
 *
 * @param folder - path of a folder for the files, which this function creates.
 * @returns the results in the order of the sets.
 * @throws Error if `tutti validate` itself fails.
 */
export async function runValidate(
  folder: string,
  sets: readonly (readonly PlainObject[])[],
  argv: readonly string[] = [],
): Promise<readonly CheckResults[]> {
  await mkdir(folder)
  for (const [i, items] of sets.entries()) {
    const placed = items.map(({ metadata, ...rest }) => ({
      ...rest,
      metadata: { ...metadata, namespace: `ns-${i}` },
    }))
    const list = { apiVersion: 'v1', kind: 'List', items: placed }
    await writeFile(join(folder, `${i}.json`), JSON.stringify(list))
  }
  const { problems, notes } = await run([`--filename=${folder}`, '--output=json', ...argv])
  const found = Map.groupBy([...problems, ...notes], ({ file }) => basename(file, '.json'))
  return sets.map((manifests, i) => toResults(manifests, found.get(String(i)) ?? []))
}

async function run(argv: readonly string[]): Promise<{ problems: Found[]; notes: Found[] }> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const options = { maxBuffer: 1024 * 1024 * 1024 }
  execFile(process.execPath, [TUTTI, 'validate', ...argv], options, (error, stdout, stderr) => {
    // It ends with 1 if something is wrong with a manifest.
    if (error === null || (error.code === 1 && stdout !== '')) resolve(stdout)
    else reject(new Error(`tutti validate: ${error.message}\n${stderr}`))
  })
  return JSON.parse(await promise)
}

function toResults(manifests: readonly PlainObject[], found: readonly Found[]): CheckResults {
  return new Map(
    manifests.map(({ kind, metadata }) => {
      const resource = `${kind}/${metadata.name}`
      return [resource, toResult(found.filter((one) => one.resource === resource))]
    }),
  )
}

function toResult([first, ...more]: readonly Found[]): CheckResult {
  if (first === undefined) return ACCEPTED
  if (first.reason !== 'Warning') {
    const all = [first, ...more]
    const problems = all.map(({ message }) => message)
    return { reason: first.reason, message: summarizeProblems(all), problems }
  }
  const message = [first, ...more].map((warning) => warning.message).join('; ')
  return { reason: 'AcceptedWithWarnings', message }
}
