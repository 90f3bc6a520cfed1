import { unlinkSync } from 'node:fs'
import t from 'tap'
import {
  type ControlFlags,
  checkControlFlags,
  chooseStartModels,
  readControlGuard,
} from './control-flags.ts'

const flags = (mode: ControlFlags['model-control-mode'], ...models: readonly string[]) => ({
  'model-control-mode': mode,
  'load-model': models,
})

await t.test('models are named in the mode explicit alone, and * alone', async (t) => {
  for (const accepted of [flags('none'), flags('explicit', 'a', 'b'), flags('explicit', '*')]) {
    checkControlFlags(accepted)
  }
  for (const [refused, message] of [
    [
      flags('poll', 'a'),
      /^--load-model: got "a" in the mode poll, want --model-control-mode=explicit/,
    ],
    [flags('none', '*'), /"\*" in the mode none/],
    [flags('explicit', 'a', '*'), /wildcard model name '\*' must be the ONLY startup model/],
  ] as const) {
    t.throws(() => checkControlFlags(refused), { reason: 'FLAG_INVALID', message })
  }
})

await t.test('the mode says what is loaded at the start', async (t) => {
  const all = ['a', 'b']
  for (const [given, want] of [
    [flags('none'), all],
    [flags('poll'), all],
    [flags('explicit'), []],
    [flags('explicit', '*'), all],
    [flags('explicit', 'b', 'c', 'b'), ['b', 'c']],
  ] as const) {
    t.same(chooseStartModels(given, all), want)
  }
})

await t.test('callers of model control are limited in the mode explicit alone', async (t) => {
  const folder = t.testdir({ token: ' secret\n', blank: '\n', words: 'a b' })
  const read = (mode: ControlFlags['model-control-mode'], file?: string, loopback = false) =>
    readControlGuard({
      'model-control-mode': mode,
      'model-control-token-file': file === undefined ? undefined : `${folder}/${file}`,
      'model-control-loopback-only': loopback,
    })
  read('none')
  const guard = read('explicit', 'token')
  const headers = { authorization: 'Bearer secret' }
  guard({ headers, address: '10.0.0.1' })
  t.throws(() => guard({ headers: {}, address: '127.0.0.1' }), {
    reason: 'UNAUTHENTICATED',
    message: /got no bearer token/,
  })
  unlinkSync(`${folder}/token`)
  t.throws(() => guard({ headers, address: '127.0.0.1' }), /cannot read the token/)
  for (const [refused, message] of [
    [() => read('poll', 'words'), /^--model-control-token-file: got it in the mode poll/],
    [
      () => read('none', undefined, true),
      /^--model-control-loopback-only: got it in the mode none/,
    ],
    [() => read('explicit', 'absent'), /cannot read the token: .*ENOENT/],
    [() => read('explicit', 'blank'), /with no token, want printable ASCII/],
    [() => read('explicit', 'words'), /with no token, want printable ASCII/],
  ] as const) {
    t.throws(refused, { reason: 'FLAG_INVALID', message })
  }
})
