import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SequenceState } from '@tutti/model-config'
import { instanceGroup } from '@tutti/model-config/testing'
import { encodeBytesTensor } from '@tutti/tensor'
import t from 'tap'
import { sequenceConfig, sequenceState } from '../testing/sequence-builders.ts'
import { readInitialStates } from './initial-states.ts'

type Initial = SequenceState['initial_state'][number]

const directory = await mkdtemp(join(tmpdir(), 'tutti-states-'))
t.teardown(() => rm(directory, { recursive: true, force: true }))
await mkdir(join(directory, 'initial_state'))
const write = (name: string, data: Uint8Array) =>
  writeFile(join(directory, 'initial_state', name), data)
await write('two', new Uint8Array(Float32Array.of(1, 2, 9).buffer))
await write('texts', encodeBytesTensor([Buffer.from('ab'), Buffer.from('')]))
await write('broken', Uint8Array.of(9, 0, 0, 0, 1))

const CPU = instanceGroup({ kind: 'KIND_CPU' })

function initial(rest: Partial<Initial> = {}): Initial {
  return { name: 'i', data_type: 'TYPE_FP32', dims: [1], zero_data: true, ...rest }
}

function fromFile({ name, data_type, dims }: Initial, data_file: string): Initial {
  return { name, data_type, dims, data_file }
}

const read = (state: Partial<SequenceState>, max_batch_size = 4, instance_group = [CPU]) =>
  readInitialStates(
    sequenceConfig({ state: [sequenceState(state)] }, { max_batch_size, instance_group }),
    directory,
  )

await t.test('a new sequence has zeros, or what a file says', async (t) => {
  const texts = { data_type: 'TYPE_STRING', dims: [-1] } as const
  const cases: readonly (readonly [Partial<SequenceState>, number, string])[] = [
    [{}, 4, '[1,1] 0,0,0,0'],
    [{}, 0, '[1] 0,0,0,0'],
    [{ dims: [-1, 2], data_type: 'TYPE_UINT8' }, 0, '[1,2] 0,0'],
    [{ dims: [-1], initial_state: [initial({ dims: [2] })] }, 0, '[2] 0,0,0,0,0,0,0,0'],
    // The bytes of a file beyond the state are not read.
    [
      { dims: [2], initial_state: [fromFile(initial({ dims: [2] }), 'two')] },
      0,
      '[2] 0,0,128,63,0,0,0,64',
    ],
    [texts, 0, '[1] 0,0,0,0'],
    [
      {
        ...texts,
        initial_state: [fromFile(initial({ data_type: 'TYPE_STRING', dims: [2] }), 'texts')],
      },
      0,
      '[2] 2,0,0,0,97,98,0,0,0,0',
    ],
  ]
  for (const [state, max, want] of cases) {
    const both = { ...state, use_same_buffer_for_input_output: true, use_growable_memory: true }
    const gpu = await read(both, max, [instanceGroup({ kind: 'KIND_GPU', gpus: [0] })])
    const got = (await read(state, max)).get('before')
    t.same(gpu.get('before'), got, 'how Triton keeps it makes no difference')
    t.equal(`[${got?.shape.join(',')}] ${got?.data.join(',')}`, want)
  }
})

await t.test('what is no state of the model is refused with the text of Triton', async (t) => {
  const cases: readonly (readonly [Partial<SequenceState>, string | RegExp])[] = [
    [
      { use_growable_memory: true },
      /^'use_growable_memory' can only work with KIND_GPU model instances right now/,
    ],
    [
      { initial_state: [initial(), initial()] },
      "initial_state field for state input 'before' must contain exactly one or zero element. Found '2' elements.",
    ],
    [
      { initial_state: [initial({ data_type: 'TYPE_INT32' })] },
      "The data type used for 'initial_state' field of state 'before' does not match the state data type.",
    ],
    [
      { initial_state: [initial({ name: '' })] },
      "Field 'name' must be set when using initial_state for state input 'before'.",
    ],
    [
      { initial_state: [initial({ dims: [1, 1] })] },
      "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state input 'before'. 2 != 1",
    ],
    [
      { initial_state: [initial({ dims: [-1] })] },
      "'initial_state' field for state input name 'before' contains variable dimensions.",
    ],
    [
      { initial_state: [initial({ dims: [2] })] },
      "'initial_state' dim for input name 'before' doesn't match 'state' dim description. 2 != 1",
    ],
    [
      { initial_state: [{ name: 'i', data_type: 'TYPE_FP32', dims: [1] }] },
      "initial_state setting expects state'before' to have state_data set",
    ],
    [
      { dims: [4], initial_state: [fromFile(initial({ dims: [4] }), 'two')] },
      'initial_state setting expects 16 bytes, but the data provided from twoonly has 12 bytes.',
    ],
    [
      { initial_state: [fromFile(initial(), '../two')] },
      "initial_state file '../two' is outside the model's initial_state directory",
    ],
    [
      { initial_state: [fromFile(initial(), 'none')] },
      /^failed to read initial_state file 'none': ENOENT/,
    ],
    [
      {
        data_type: 'TYPE_STRING',
        initial_state: [fromFile(initial({ data_type: 'TYPE_STRING' }), 'texts')],
      },
      "initial_state of state input 'before' has 2 strings, want 1",
    ],
    [
      {
        data_type: 'TYPE_STRING',
        initial_state: [fromFile(initial({ data_type: 'TYPE_STRING' }), 'broken')],
      },
      /^initial_state of state input 'before': /,
    ],
  ]
  for (const [state, message] of cases) {
    await t.rejects(read(state), { reason: 'CONFIG_INVALID', message })
  }
})
