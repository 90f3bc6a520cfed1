// needs: python
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { shapeMatches, type TensorValue } from '@tutti/tensor'
import t, { type Test } from 'tap'
import { openBuiltins, type RunBuiltin } from '../testing/builtin-steps.ts'
import { createDice, python, times } from '../testing/dice.ts'
import { type Evaluate, startNumpy } from '../testing/numpy-reference.ts'
import { TEST_PYTHON, WITHOUT_PYTHON } from '../testing/python-model.ts'
import { equalTensors } from '../testing/random-tensors.ts'
import { runChain } from '../testing/run-chain.ts'
import { createDraw } from '../testing/step-kinds/create-draw.ts'
import { portsOf, STEP_KINDS, type StepChain, type StepKind } from '../testing/step-kinds/index.ts'

/*
 * Steps that public ensembles write in Python, made of built-ins alone: each chain computes what Python does.
 */

t.setTimeout(180_000)

const TRAIN = fileURLToPath(new URL('../testing/train_tokenizers.py', import.meta.url))
const PADDLE = fileURLToPath(new URL('../testing/paddle_reference.py', import.meta.url))
const REFERENCE = fileURLToPath(new URL('../testing/step_kinds_reference.py', import.meta.url))
const countRows = (kinds: readonly StepKind[]): number => kinds.flatMap((kind) => kind.rows).length

await t.test('each of the 68 steps is in the table, once', async (t) => {
  const rows = STEP_KINDS.flatMap((kind) => kind.rows).toSorted((a, b) => a - b)
  t.same(
    rows,
    Array.from({ length: 68 }, (_, i) => i + 1),
  )
  const expressed = STEP_KINDS.filter(({ expressed: one }) => typeof one !== 'string')
  t.ok(countRows(expressed) >= 34, `${countRows(expressed)} of 68 are chains of built-ins`)
})

/** Asserts that tensors have the datatypes and dims of a row. */
function fitsRow(t: Test, text: string, tensors: readonly (TensorValue | undefined)[]): void {
  if (text.startsWith('(')) return
  const ports = portsOf(text)
  t.equal(tensors.length, ports.length, `${text}: number of tensors`)
  for (const [i, { datatype, dims }] of ports.entries()) {
    const { datatype: type, shape } = tensors[i] ?? {}
    t.equal(type, datatype, text)
    t.ok(shapeMatches(dims, shape ?? []), `[${shape?.join(',')}] in [${dims.join(',')}]`)
  }
}

interface Tools {
  readonly run: RunBuiltin
  readonly numpy: Evaluate
  readonly directory: string
}

/** Asserts that a chain of built-ins computes as the Python of its row, on random inputs. */
async function compareChain(
  t: Test,
  tools: Tools,
  kind: StepKind,
  chain: StepChain,
): Promise<void> {
  const dice = createDice()
  const { run, numpy } = tools
  const setup = `
exec(open(${python(REFERENCE)}).read())
exec(open(${python(PADDLE)}).read())
import tokenizers
tokenizer = tokenizers.Tokenizer.from_file(${python(join(tools.directory, 'tokenizer.json'))})
${chain.python}`
  for (const i of times(chain.cases ?? 3)) {
    const inputs = await chain.draw(createDraw(t, run, dice))
    fitsRow(t, kind.takes, inputs.slice(0, inputs.length - (chain.networks?.length ?? 0)))
    const given = new Map(inputs.map((tensor) => [tensor.name, tensor]))
    const tensors = await runChain(t, run, { steps: chain.steps, inputs: given })
    const outputs = chain.outputs.map((from) => tensors.get(from))
    fitsRow(t, kind.makes, outputs)
    const wanted = await numpy('out', inputs, setup)
    t.equal(wanted.length, outputs.length, 'as many outputs as Python has')
    outputs.forEach((output, at) => {
      equalTensors(t, output, wanted[at], `case ${i}: ${chain.outputs[at]}`, chain.tolerance)
    })
  }
}

await t.test('chains of built-ins compute as Python does', { skip: WITHOUT_PYTHON }, async (t) => {
  const directory = t.testdir()
  execFileSync(TEST_PYTHON ?? '', [TRAIN, directory])
  execFileSync('cp', [join(directory, 'bert.json'), join(directory, 'tokenizer.json')])
  const numpy = startNumpy(t, TEST_PYTHON ?? '')
  const tools = { run: await openBuiltins(t, directory), numpy, directory }
  for (const kind of STEP_KINDS) {
    const { expressed } = kind
    if (typeof expressed === 'string') continue
    await t.test(`rows ${kind.rows.join(', ')}: ${kind.does}`, (t) =>
      compareChain(t, tools, kind, expressed),
    )
  }
})
