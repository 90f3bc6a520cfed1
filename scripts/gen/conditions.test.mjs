import t from 'tap'
import { writeConditions } from './conditions.mjs'

const CODE = { types: {}, graph: [] }

/** A checkout whose operator has one file of the controller of Models. */
function checkout(t, source) {
  const controllers = { model: { 'check.ts': source, 'events.ts': "reason: 'OfAnEvent' }" } }
  return t.testdir({ docs: {}, operator: { src: { controllers } } })
}

await t.test('a reason without a text is named with its file', async (t) => {
  for (const source of ["isFalse('Unheard', text)", "reason: 'Unheard',", "reason ?? 'Unheard' }"]) {
    t.throws(() => writeConditions(checkout(t, source), CODE), {
      message: /model\/check\.ts: reason Unheard has no text/,
    })
  }
})

await t.test('a text without a reason is named', async (t) => {
  t.throws(() => writeConditions(checkout(t, "isTrue('Accepted', text)"), CODE), {
    message: /no source of the operator has reason \w+/,
  })
})
