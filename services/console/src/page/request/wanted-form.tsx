import { useState } from 'preact/hooks'
import type { NextQuery } from '../../api/next-request.ts'

/** The request that a user waits for. */
export type Wanted = Pick<NextQuery, 'want' | 'slowerThanMs' | 'id'>

/** Shows the form in which a user chooses the next request, in one of four ways. */
export function WantedForm({ wait }: { readonly wait: (wanted: Wanted) => void }) {
  const [slowerThanMs, setSlower] = useState('100')
  const [id, setId] = useState('')
  return (
    <div class="wanted">
      <button type="button" onClick={() => wait({ want: 'any' })}>
        Next request
      </button>
      <button type="button" onClick={() => wait({ want: 'failed' })}>
        Next failed one
      </button>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          wait({ want: 'slow', slowerThanMs: Number(slowerThanMs) })
        }}
      >
        <button type="submit">Next slow one</button>
        <label>
          of at least{' '}
          <input
            type="number"
            min="0"
            step="any"
            required
            value={slowerThanMs}
            onInput={({ currentTarget: { value } }) => setSlower(value)}
          />{' '}
          ms
        </label>
      </form>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          wait({ want: 'id', id })
        }}
      >
        <button type="submit">Next with this id</button>
        <input
          type="text"
          aria-label="Request id or trace id"
          placeholder="request id or trace id"
          required
          value={id}
          onInput={({ currentTarget: { value } }) => setId(value)}
        />
      </form>
    </div>
  )
}
