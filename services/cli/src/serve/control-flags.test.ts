import t from 'tap'
import { type ControlFlags, checkControlFlags, chooseStartModels } from './control-flags.ts'

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
