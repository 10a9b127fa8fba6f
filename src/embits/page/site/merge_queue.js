/** The merges that are possible in a word: a heap, lowest rank first, then from left to right. */
const PLACES = 2 ** 31;

export class MergeQueue {
  #heap = [];

  push(rank, at) {
    const heap = this.#heap;
    const key = rank * PLACES + at; // exact: ranks are below 2²²
    let place = heap.push(key) - 1;
    for (let up = (place - 1) >> 1; place > 0 && heap[up] > key; up = (place - 1) >> 1) {
      heap[place] = heap[up];
      place = up;
    }
    heap[place] = key;
  }

  /** The first merge, { rank, at }, which is removed; null if there is none. */
  pop() {
    const heap = this.#heap;
    if (!heap.length) return null;
    const first = heap[0];
    const last = heap.pop();
    let place = 0;
    for (let down = 1; down < heap.length; down = 2 * place + 1) {
      if (heap[down + 1] < heap[down]) down++;
      if (!(heap[down] < last)) break;
      heap[place] = heap[down];
      place = down;
    }
    if (heap.length) heap[place] = last;
    return { rank: Math.floor(first / PLACES), at: first % PLACES };
  }
}
