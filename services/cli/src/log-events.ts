/** The front doors are open; the fields say where. */
export const SERVING = 'server ready'
