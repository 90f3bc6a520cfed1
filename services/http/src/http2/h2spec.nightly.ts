import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { startPlainServer } from './testing/plain-server.ts'

const run = promisify(execFile)

const H2SPEC = 'github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible'
const LEAST_CASES = 140

async function hasGo(): Promise<boolean> {
  try {
    await run('go', ['version'])
    return true
  } catch {
    return false
  }
}

/** Runs all cases of h2spec. @returns those that failed, by section and title. */
async function runH2spec(folder: string, port: number): Promise<readonly string[]> {
  const report = join(folder, 'report.xml')
  const args = ['-h', '127.0.0.1', '-p', String(port), '-j', report]
  // It exits 1 if any case fails.
  await run(join(folder, 'h2spec'), args).catch(() => undefined)
  const cases = (await readFile(report, 'utf8')).split('<testcase ').slice(1)
  if (cases.length < LEAST_CASES) throw new Error(`h2spec ran ${cases.length} cases`)
  return cases
    .filter((text) => /<failure|<error|<skipped/.test(text))
    .map((text) => /package="([^"]*)" classname="([^"]*)"/.exec(text)?.slice(1).join(': ') ?? text)
}

const skip = (await hasGo()) ? false : 'there is no Go'

await t.test('every case of h2spec passes', { skip, timeout: 900_000 }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tutti-h2spec-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const env = [`GOBIN=${folder}`, 'GOFLAGS=-buildvcs=false']
  await run('env', [...env, 'go', 'install', H2SPEC], { timeout: 600_000 })
  const { port } = await startPlainServer(t)
  t.same(await runH2spec(folder, port), [])
})
