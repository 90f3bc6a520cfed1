import { assert, property, string } from 'fast-check'
import t from 'tap'
import { fieldOf } from './field-of.ts'

await t.test('the field of a refusal stands before its text', async (t) => {
  for (const [message, field, text] of [
    ['steps[1](restore).inputMap[face]: got a.b', 'steps[1](restore).inputMap[face]', 'got a.b'],
    ['modelName: the Ensemble "x" serves it', 'modelName', 'the Ensemble "x" serves it'],
    ['podTemplate.spec.volumes[0]: got x: y', 'podTemplate.spec.volumes[0]', 'got x: y'],
    ['version 1: no file', '', 'version 1: no file'],
    ['ControllerRevision: exceeded quota', '', 'ControllerRevision: exceeded quota'],
  ] as const) {
    t.same(fieldOf({ state: 'refused', message }), { field, text })
    t.same(fieldOf({ state: 'not ready', message }), { field: '', text: message })
  }
})

await t.test('nothing of a message is lost', async () => {
  assert(
    property(string(), string(), (a, b) => {
      const message = `${a}: ${b}`
      const { field, text } = fieldOf({ state: 'refused', message })
      return (field === '' ? text : `${field}: ${text}`) === message
    }),
  )
})
