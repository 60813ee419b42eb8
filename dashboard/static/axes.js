// The axes of a plot, drawn on its canvas: a plugin for dygraphs. Its own plugin makes elements at each drawing.
//
// Read first: dygraphs' plugins/axes.js for the events.

import { palette, projector } from "./theme.js";

export class Axes {
  toString() {
    return "Axes Plugin";
  }

  activate() {
    return { layout: this.layout, willDrawChart: this.willDrawChart };
  }

  layout(event) {
    event.reserveSpaceLeft(projector() ? 54 : 42);
    event.reserveSpaceBottom(projector() ? 26 : 20);
  }

  willDrawChart({ dygraph, drawingContext: context }) {
    const colours = palette();
    const { x, y, w, h } = dygraph.getArea();
    const size = projector() ? 15 : 11;
    // the plot is drawn, and wiped, inside a clip to its own area, in one level of saved state
    context.restore();
    context.save();
    context.clearRect(0, 0, x, dygraph.height_);
    context.clearRect(0, y + h, dygraph.width_, dygraph.height_ - y - h);
    context.clearRect(x + w, 0, dygraph.width_ - x - w, dygraph.height_);
    context.font = `${size}px ${colours.font}`;
    context.fillStyle = colours.muted;
    context.strokeStyle = colours.axis;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x + 0.5, y);
    context.lineTo(x + 0.5, Math.round(y + h) - 0.5);
    context.lineTo(x + w, Math.round(y + h) - 0.5);
    context.stroke();
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const { pos, label } of dygraph.layout_.yticks) {
      context.fillText(label, x - 6, Math.max(y + size / 2, y + pos * h));
    }
    context.textAlign = "center";
    context.textBaseline = "top";
    for (const { pos, label } of dygraph.layout_.xticks) {
      const half = context.measureText(label).width / 2;
      context.fillText(label, Math.min(x + pos * w, x + w + 8 - half), y + h + 5);
    }
    context.restore();
    context.save();
    context.beginPath();
    context.rect(x, y, w, h);
    context.clip();
  }
}
