import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  createDice,
  createDraw,
  openBuiltins,
  runChain,
  STEP_KINDS,
  type StepChain,
  type StepKind,
} from '@tutti/backends/testing'
import { type Datatype, isDatatype, type NamedTensor, type TensorValue } from '@tutti/tensor'
import t, { type Test } from 'tap'
import { describeInput, FILES_MODEL, kindManifests, kindName } from './testing/kind-manifests.ts'
import { FIXTURES, model, serve } from './testing/serve-manifests.ts'

/*
 * The chains that stand for Python steps of public ensembles, as Ensembles: each answers as its built-ins do one by one, which a
 * test of services/backends compares with Python.
 */

t.setTimeout(180_000)

const WORDS = ['[PAD]', '[UNK]', 'a', 'model', 'serves', 'tensors', 'to', 'clients', 'we', 'are']
const TOKENIZER = {
  version: '1.0',
  truncation: null,
  padding: null,
  added_tokens: [],
  normalizer: { type: 'Lowercase' },
  pre_tokenizer: { type: 'Whitespace' },
  post_processor: null,
  decoder: null,
  model: {
    type: 'WordLevel',
    vocab: Object.fromEntries(WORDS.map((word, i) => [word, i])),
    unk_token: '[UNK]',
  },
}

/** A folder with a Model that has a tokenizer beside its version. */
async function writeFiles(t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tutti-kinds-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  await cp(join(FIXTURES, 'add_one'), join(folder, FILES_MODEL), { recursive: true })
  const file = join(folder, FILES_MODEL, '1', 'tokenizer.json')
  await writeFile(file, JSON.stringify(TOKENIZER))
  await cp(file, join(folder, 'tokenizer.json'))
  return folder
}

interface Output {
  readonly name: string
  readonly datatype: string
  readonly shape: readonly number[]
  readonly parameters: { readonly binary_data_size: number }
}

const datatypeOf = (text: string): Datatype => {
  if (isDatatype(text)) return text
  throw new Error(`datatype ${text}`)
}

/** Asks an Ensemble by the binary extension of REST. @throws Error with the server's message. */
async function infer(port: number, name: string, inputs: readonly NamedTensor[]) {
  const head = Buffer.from(
    JSON.stringify({
      parameters: { binary_data_output: true },
      inputs: inputs.map(({ data, ...rest }) => {
        return { ...rest, parameters: { binary_data_size: data.byteLength } }
      }),
    }),
  )
  const answer = await fetch(`http://127.0.0.1:${port}/v2/models/${name}/infer`, {
    method: 'POST',
    headers: { 'inference-header-content-length': String(head.byteLength) },
    body: Buffer.concat([head, ...inputs.map(({ data }) => data)]),
  })
  const body = Buffer.from(await answer.arrayBuffer())
  if (answer.status !== 200) throw new Error(body.toString())
  const length = Number(answer.headers.get('inference-header-content-length') ?? body.byteLength)
  const { outputs }: { readonly outputs: readonly Output[] } = JSON.parse(
    body.subarray(0, length).toString(),
  )
  let at = length
  return outputs.map(({ datatype, shape, parameters }): TensorValue => {
    const data = body.subarray(at, at + parameters.binary_data_size)
    at += parameters.binary_data_size
    return { datatype: datatypeOf(datatype), shape, data }
  })
}

interface DrawnKind {
  readonly kind: StepKind
  readonly chain: StepChain
  readonly inputs: readonly NamedTensor[]
}

await t.test('each chain of built-ins is an Ensemble that answers as its steps do', async (t) => {
  const folder = await writeFiles(t)
  const run = await openBuiltins(t, folder)
  const drawn: DrawnKind[] = []
  for (const kind of STEP_KINDS) {
    const { expressed: chain } = kind
    if (typeof chain === 'string') continue
    drawn.push({ kind, chain, inputs: await chain.draw(createDraw(t, run, createDice())) })
  }
  const manifests = drawn.flatMap(({ kind, chain, inputs }) => kindManifests(kind, chain, inputs))
  const files = model(FILES_MODEL, `pvc://kinds/${FILES_MODEL}`)
  const { port } = await serve(t, [files, ...manifests], `--storage-map=pvc://kinds=${folder}`)
  for (const { kind, chain, inputs } of drawn) {
    const given = new Map(inputs.map((one) => [one.name, one]))
    const tensors = await runChain(t, run, { steps: chain.steps, inputs: given })
    const got = await infer(port, kindName(kind), inputs)
    const text = `rows ${kind.rows.join(', ')}: ${inputs.map(describeInput).join(', ')}`
    for (const [i, from] of chain.outputs.entries()) {
      const { datatype, shape, data } = tensors.get(from) ?? {}
      t.same([got[i]?.datatype, got[i]?.shape], [datatype, shape], text)
      t.ok(Buffer.from(data ?? []).equals(got[i]?.data ?? Buffer.alloc(0)), `${text}: ${from}`)
    }
  }
})
