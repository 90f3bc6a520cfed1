import { ServeError } from '@tutti/errors'
import { Admission, loadFailed, pollFailed } from '@tutti/serving'
import { RecordingControl } from '@tutti/serving/testing'
import * as fc from 'fast-check'
import t, { type Test } from 'tap'
import { startRestServer } from '../rest-server.ts'
import { createRestBackend } from '../testing/rest-backend.ts'

async function open(t: Test) {
  const backend = createRestBackend()
  const control = new RecordingControl()
  backend.control = control
  const admission = new Admission()
  const server = await startRestServer({ backend, address: '127.0.0.1', port: 0, admission })
  t.teardown(() => server.close())
  const post = async (path: string, body: string | Uint8Array<ArrayBuffer> = '') => {
    const url = `http://127.0.0.1:${server.port}/v2/repository/${path}`
    const answer = await fetch(url, { method: 'POST', body })
    return { status: answer.status, text: await answer.text() }
  }
  return { backend, control, admission, post }
}

function parameters(given: unknown): string {
  return JSON.stringify({ parameters: given })
}

await t.test('a load reaches the control with its config and files', async (t) => {
  const { control, post } = await open(t)
  const bytes = Buffer.from([0, 1, 255, 7])
  for (const body of ['', '{}', '[]', '{"parameters":{}}']) {
    t.same(await post('models/m/load', body), { status: 200, text: '' })
  }
  const body = parameters({
    config: '{"a":1}',
    'file:1/f': bytes.toString('base64'),
    'file:2/f': '',
  })
  t.equal((await post('models/a%2Fb/load', body)).status, 200)
  t.same(
    control.loads.slice(0, 4),
    Array.from({ length: 4 }, () => ['m', { files: new Map() }]),
  )
  t.same(control.loads[4], [
    'a/b',
    {
      config: '{"a":1}',
      files: new Map([
        ['1/f', bytes],
        ['2/f', Buffer.of()],
      ]),
    },
  ])
})

await t.test('an unload reaches the control, with its dependents if wanted', async (t) => {
  const { control, post } = await open(t)
  await post('models/m/unload')
  await post('models/m/unload', parameters({ unload_dependents: true, other: 5 }))
  for (const value of ['yes', 1, null, {}]) {
    t.match(await post('models/m/unload', parameters({ unload_dependents: value })), {
      status: 200,
    })
  }
  t.same(control.unloads, [
    ['m', false],
    ['m', true],
    ...Array.from({ length: 4 }, () => ['m', false]),
  ])
})

await t.test('what is wrong with a body', async (t) => {
  const { control, post } = await open(t)
  const cases: readonly (readonly ['load' | 'unload', string, number, RegExp])[] = [
    ['load', '{bad', 500, /failed to parse the request JSON buffer/],
    ['load', '{"parameters":5}', 500, /attempt to get members for non-object/],
    ['load', '{"parameters":[]}', 500, /attempt to get members for non-object/],
    ['load', parameters({ config: 5 }), 500, /attempt to access JSON non-string as string/],
    ['load', parameters({ foo: 5 }), 500, /attempt to access JSON non-string as string/],
    ['load', parameters({ foo: 'x' }), 400, /unrecognized load parameter 'foo'\./],
    ['load', parameters({ 'file:1/f': '!' }), 400, /load parameter 'file:1\/f': want base64/],
    ['load', parameters({ 'file:1/f': 'QUJD=A' }), 400, /want base64/],
    ['unload', '{bad', 500, /failed to parse the request JSON buffer/],
    ['unload', '{"parameters":5}', 500, /attempt to get members for non-object/],
  ]
  for (const [action, body, status, text] of cases) {
    t.match(await post(`models/m/${action}`, body), { status, text }, body)
  }
  t.same(control.loads, [])
  t.same(control.unloads, [])
})

await t.test('failures keep their code, and without a control there is none', async (t) => {
  const { backend, control, post } = await open(t)
  control.outcome = () => Promise.reject(loadFailed('m', 'broken'))
  t.same(await post('models/m/load'), {
    status: 400,
    text: JSON.stringify({ error: "load failed for model 'm': broken\n" }),
  })
  const cause = new ServeError('MODEL_NOT_FOUND', 'it is not there')
  control.outcome = () => Promise.reject(pollFailed('m', cause))
  t.same(await post('models/m/load'), {
    status: 500,
    text: JSON.stringify({
      error: "failed to load 'm', failed to poll from model repository: it is not there",
    }),
  })
  t.equal((await post('r/models/m/load')).status, 501)
  delete backend.control
  for (const action of ['load', 'unload']) {
    t.match(await post(`models/m/${action}`), {
      status: 503,
      text: /explicit model load \/ unload is not allowed if polling is enabled/,
    })
  }
})

const SEED = parameters({ config: '{}', 'file:1/f': 'AAEC', unload_dependents: true })
const mutated = fc
  .array(fc.tuple(fc.nat(SEED.length), fc.nat(8), fc.string({ maxLength: 6 })), { maxLength: 3 })
  .map((edits) =>
    edits.reduce((text, [at, cut, put]) => text.slice(0, at) + put + text.slice(at + cut), SEED),
  )

await t.test('any body is taken or refused with a text, and nothing stays held', async (t) => {
  const { admission, control, post } = await open(t)
  const statuses = new Set<number>()
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('load', 'unload'),
      fc.oneof(mutated, fc.json(), fc.string()),
      async (action, body) => {
        const { status, text } = await post(`models/m/${action}`, body)
        statuses.add(status)
        if (status === 200 && text === '') return
        const answer: unknown = JSON.parse(text)
        if (!t.match(answer, { error: String }) || status < 400)
          throw new Error(`${status} ${text}`)
      },
    ),
    { numRuns: 300 },
  )
  t.ok(statuses.has(200) && statuses.has(500), [...statuses].join(' '))
  t.ok(control.loads.length > 0 && control.unloads.length > 0)
  t.same([admission.requests, admission.bytes], [0, 0])
})
