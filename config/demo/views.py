"""Views of the sample project: one that enqueues in its transaction, one for health checks."""

from __future__ import annotations

from django.db import transaction
from django.forms import modelform_factory
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods, require_safe

from config.demo.models import Order
from config.demo.payment import PaymentRefused, charge
from config.demo.tasks import pack_order

OrderForm = modelform_factory(Order, fields=["customer", "item", "quantity"])


@require_http_methods(["GET", "HEAD", "POST"])
def orders(request: HttpRequest) -> HttpResponse:
    """Place an order: the order, its receipt job and its packing job are stored together or not at all."""
    form = OrderForm(request.POST or None)
    if request.method != "POST":
        return render(request, "demo/order.html", {"form": form})
    if not form.is_valid():
        return JsonResponse({"errors": form.errors}, status=400)
    try:
        with transaction.atomic():
            order = form.save()  # its post_save receiver enqueues the receipt
            job = pack_order.enqueue(order.pk)
            charge(order)
    except PaymentRefused as refused:
        return JsonResponse({"errors": {"quantity": [str(refused)]}}, status=402)
    return JsonResponse({"order": order.pk, "job": job.pk}, status=201)


@require_safe
def ping(request: HttpRequest) -> HttpResponse:
    return HttpResponse("pong\n", content_type="text/plain")
