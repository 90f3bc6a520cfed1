// needs: python, torch
import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { env } from 'node:process'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'

/** The report of unittest on one test, as `tests/report.py` prints it. */
interface Outcome {
  readonly id: string
  readonly outcome: 'passed' | 'failed' | 'skipped'
  readonly detail: string
}

const FOLDER = fileURLToPath(new URL('../python', import.meta.url))
const PYTHON = env['TUTTI_TEST_PYTHON']
const TORCH_PYTHON = env['TUTTI_TEST_TORCH_PYTHON']
const withoutTorch =
  env['TUTTI_TEST_TORCH_MISSING'] ?? 'TUTTI_TEST_TORCH_PYTHON names no Python with PyTorch'

const modules = readdirSync(`${FOLDER}/tests`)
  .filter((name) => /^test_.*\.py$/.test(name))
  .map((name) => `tests.${name.slice(0, -3)}`)
const ofTorch = modules.filter((name) => name.includes('torch'))

function run(python: string, names: readonly string[]): Outcome[] {
  const output = execFileSync(python, ['-B', '-m', 'tests.report', ...names], {
    cwd: FOLDER,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return output
    .trim()
    .split('\n')
    .map((line): Outcome => JSON.parse(line))
}

async function report(t: Test, python: string, names: readonly string[]): Promise<void> {
  const outcomes = run(python, names)
  for (const name of names) {
    t.ok(
      outcomes.some(({ id }) => id.startsWith(`${name}.`)),
      `${name} has tests`,
    )
  }
  for (const { id, outcome, detail } of outcomes) {
    const skip = outcome === 'skipped' && detail
    await t.test(id, { skip }, async (t) => {
      t.equal(outcome, 'passed', detail)
    })
  }
}

await t.test(
  'the library that models import',
  { skip: PYTHON === undefined && 'TUTTI_TEST_PYTHON is not set' },
  async (t) => {
    const names = modules.filter((name) => !ofTorch.includes(name))
    await report(t, PYTHON ?? '', names)
  },
)

for (const name of ofTorch) {
  await t.test(
    `${name}, with PyTorch`,
    { skip: TORCH_PYTHON === undefined && withoutTorch },
    async (t) => report(t, TORCH_PYTHON ?? '', [name]),
  )
}
