import * as fc from 'fast-check'
import t from 'tap'
import { childName } from './names.ts'

await t.test('a child has the name of its owner and its role', async (t) => {
  t.equal(childName('yolo', 'step'), 'yolo-step')
  t.equal(childName('a'.repeat(58), 'step').length, 63)
})

await t.test('a name that is too long is cut, and still its own', async (t) => {
  t.equal(childName('a'.repeat(59), 'step'), `${'a'.repeat(49)}-31dadae3-step`)
  const owner = fc.stringMatching(/^[a-z]([-a-z0-9]{0,80}[a-z0-9])?$/)
  fc.assert(
    fc.property(owner, owner, fc.constantFrom('step', 'router'), (one, other, role) => {
      const name = childName(one, role)
      t.match(name, /^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/)
      if (one !== other) t.not(name, childName(other, role))
    }),
  )
})
