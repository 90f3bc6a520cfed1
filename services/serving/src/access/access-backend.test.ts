import { ServeError } from '@tutti/errors'
import t from 'tap'
import { ScriptedBackend } from '../testing/scripted-backend.ts'
import { AccessBackend } from './access-backend.ts'
import { AccessCounts, AccessLog } from './access-log.ts'
import type { Grant } from './credentials.ts'

/** Finds the identity of a caller with these models; undefined for all. */
function identityOf(...models: readonly (readonly string[] | undefined)[]) {
  const grants = models.map((names): Grant => {
    return { identity: 'ci', models: names && new Set(names), mayControl: true, meter: undefined }
  })
  return new AccessBackend({
    backend: new ScriptedBackend({ a: {} }),
    grants: () => grants,
    caller: { headers: {}, path: undefined, socket: undefined },
    refuse: (name) => new ServeError('ACCESS_DENIED', name),
    hasControl: true,
    log: new AccessLog({ counts: new AccessCounts() }),
  }).identity
}

await t.test('an identity says what it may call, also what is not there', (t) => {
  const one = identityOf(['a', 'absent'])
  t.same(['a', 'absent', 'b'].map(one.mayCall), [true, true, false])
  const both = identityOf(['a'], ['b'])
  t.same(['a', 'b', 'c'].map(both.mayCall), [true, true, false])
  const all = identityOf(['a'], undefined)
  t.same(['a', 'b'].map(all.mayCall), [true, true])
  t.equal(identityOf([]).mayCall('a'), false)
  t.end()
})
