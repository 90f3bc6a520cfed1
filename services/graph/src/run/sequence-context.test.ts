import type { Parameter } from '@tutti/tensor'
import { requestContext } from '@tutti/tensor/testing'
import t from 'tap'
import { overrideSequence, sequenceParameters } from './sequence-context.ts'

const TRUE: Parameter = { kind: 'bool', value: true }

function responseId(request: bigint | string, made: bigint | string): Parameter | undefined {
  const context = requestContext({ correlationId: made })
  return sequenceParameters(requestContext({ correlationId: request }), context).get('sequence_id')
}

await t.test('a response without sequence parameters changes nothing', async (t) => {
  const context = requestContext({ correlationId: 5n })
  t.equal(overrideSequence(context, new Map()), context)
  t.equal(overrideSequence(context, new Map([['other', TRUE]])), context)
})

await t.test('an id is replaced, and flags that are not mentioned fall', async (t) => {
  const context = requestContext({ correlationId: 5n, sequenceStart: true, sequenceEnd: true })
  const ids: readonly (readonly [Parameter, bigint | string])[] = [
    [{ kind: 'int64', value: 6n }, 6n],
    [{ kind: 'int64', value: -1n }, 2n ** 64n - 1n],
    [{ kind: 'string', value: 's' }, 's'],
  ]
  for (const [parameter, correlationId] of ids) {
    const parameters = new Map([['sequence_id', parameter]])
    t.same(overrideSequence(context, parameters), requestContext({ correlationId }))
  }
  t.same(
    overrideSequence(context, new Map([['sequence_start', TRUE]])),
    requestContext({ correlationId: 5n, sequenceStart: true }),
  )
})

await t.test('parameters of another kind are refused with the text of Triton', async (t) => {
  const texts = {
    sequence_id:
      "expected parameter 'sequence_id' to be TRITONSERVER_PARAMETER_INT or TRITONSERVER_PARAMETER_STRING",
    sequence_start: "expect parameter 'sequence_start' to be TRITONSERVER_PARAMETER_BOOL",
    sequence_end: "expect parameter 'sequence_end' to be TRITONSERVER_PARAMETER_BOOL",
  }
  const wrong: Parameter = { kind: 'double', value: 1 }
  for (const [name, message] of Object.entries(texts)) {
    t.throws(() => overrideSequence(requestContext(), new Map([[name, wrong]])), {
      reason: 'RESPONSE_INVALID',
      code: 'INVALID_ARGUMENT',
      message,
    })
  }
})

await t.test('the id of a response has the kind of the id of the request', async (t) => {
  t.same(responseId(0n, 0n), { kind: 'int64', value: 0n })
  t.same(responseId(0n, 2n ** 64n - 1n), { kind: 'int64', value: -1n })
  t.same(responseId('s', 's'), { kind: 'string', value: 's' })
  t.same(responseId('s', 7n), { kind: 'string', value: '7' })
  t.same(responseId(7n, 's'), { kind: 'string', value: 's' }, 'a text has no number')
})
