import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { PlainObject } from '@tutti/kube/testing'
import type { Test } from 'tap'
import { BASIC } from '../temp-repository.ts'
import { fp32 } from '../tensors.ts'
import { publicFolder } from './claim.ts'

/** The namespace of all of them. */
export const SPACE = 'adders'
/** Versions of the fixture `versioned`, by what each adds. */
const VERSIONS = { 'plus-one': '1', 'plus-three': '3' } as const
type Adder = keyof typeof VERSIONS

const TENSOR = { datatype: 'FP32', shape: [-1] }
const NUMBERS = [1, 2, 3.5, -4]

/** Input with which every ensemble of adders is asked. */
export const INPUT = fp32('x', NUMBERS)

/** The answer of an ensemble that adds so much in all. */
export function sumOf(added: number): Uint8Array {
  return fp32(
    'y',
    NUMBERS.map((x) => x + added),
  ).data
}

/** A folder with the files of Models that add a number to each element: `plus-one` and `plus-three`; and `slow`. */
export async function makeAdders(t: Test): Promise<string> {
  const folder = await publicFolder(t)
  const config = await readFile(join(BASIC, 'versioned', 'config.pbtxt'), 'utf8')
  const lines = config.split('\n').filter((line) => !/^(name|version_policy):/.test(line))
  for (const [name, version] of Object.entries(VERSIONS)) {
    await mkdir(join(folder, name))
    await writeFile(join(folder, name, 'config.pbtxt'), lines.join('\n'))
    const from = join(BASIC, 'versioned', version)
    await cp(from, join(folder, name, '1'), { recursive: true })
  }
  await cp(join(BASIC, 'slow'), join(folder, 'slow'), { recursive: true })
  return folder
}

/** A Model of the claim `models`, with two pods. */
export function adder(name: string, files: Adder): PlainObject {
  const scaling = { minReplicas: 2, maxReplicas: 2 }
  return adderFrom(name, { storageUri: `pvc://models/${files}`, scaling })
}

/** A Model with these files, and one pod. */
export function adderFrom(name: string, spec: PlainObject): PlainObject {
  return model(name, {
    inputs: [{ name: 'x', ...TENSOR }],
    outputs: [{ name: 'y', ...TENSOR }],
    scaling: { minReplicas: 1, maxReplicas: 1 },
    ...spec,
  })
}

/** The tensors of a slow request. */
const SLOW = {
  inputs: [
    { name: 'x', datatype: 'FP32', shape: [1] },
    { name: 'rounds', datatype: 'INT64', shape: [1] },
  ],
  outputs: [{ name: 'y', datatype: 'FP32', shape: [1] }],
}

/** A Model whose requests take long. */
export function slowModel(name: string, spec: object): PlainObject {
  return model(name, { storageUri: 'pvc://models/slow', ...SLOW, ...spec })
}

function model(name: string, spec: object): PlainObject {
  return {
    apiVersion: 'tutti.dev/v1alpha1',
    kind: 'Model',
    metadata: { namespace: SPACE, name },
    spec: { modelFormat: { name: 'onnx' }, maxBatchSize: 0, ...spec },
  }
}

/** An Ensemble that asks these Models one after the other. */
export function chain(name: string, models: readonly string[]): PlainObject {
  const last = models.length - 1
  return ensemble(name, {
    inputs: [{ name: 'x', ...TENSOR }],
    outputs: [{ name: 'y', from: 'y', ...TENSOR }],
    steps: models.map((of, i) => ({
      name: `step-${i}`,
      modelRef: { name: of },
      inputMap: { x: i === 0 ? 'x' : `between-${i}` },
      outputMap: { y: i === last ? 'y' : `between-${i + 1}` },
    })),
  })
}

function ensemble(name: string, spec: object): PlainObject {
  return {
    apiVersion: 'tutti.dev/v1alpha1',
    kind: 'Ensemble',
    metadata: { namespace: SPACE, name },
    spec: { maxBatchSize: 0, ...spec },
  }
}

/** An Ensemble of one Model whose requests take long. */
export function slowEnsemble(name: string, of: string): PlainObject {
  return ensemble(name, {
    inputs: SLOW.inputs,
    outputs: SLOW.outputs.map((output) => ({ ...output, from: 'y' })),
    steps: [
      {
        name: 'slow',
        modelRef: { name: of },
        inputMap: { x: 'x', rounds: 'rounds' },
        outputMap: { y: 'y' },
      },
    ],
  })
}
